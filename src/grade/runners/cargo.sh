# build RECORD PROGRAM ARGUMENT…   runs cargo in the package's folder, keeps and prints its JSON
# run RECORD SOURCE ARGUMENT…      runs the executable that was built from SOURCE
# Standard input holds the mark of our records; descriptor 3 takes them. Neither is open in what is
# started here.
read -r mark
exec </dev/null
mode=$1 record=$2
shift 2

executables() {
  grep -F '"kind":["test"]' "$record" | grep -F "\"src_path\":\"$1" |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# Calls $1 with each lock file from here upward and the place of its copy.
locks() {
  folder=$PWD number=0
  while :; do
    [ -f "$folder/Cargo.lock" ] && "$1" "$folder/Cargo.lock" "$record.$number"
    [ -z "$folder" ] && break
    folder=${folder%/*} number=$((number + 1))
  done
}

keep() { cp "$1" "$2"; }

# cargo may bring a lock file up to date; the tree under test stays as it was.
restore() { cmp -s "$1" "$2" || cat "$2" >"$1"; }

if [ "$mode" = build ]; then
  locks keep
  # No file yet: what runs while cargo builds could write into one.
  said=$("$@" 3>&-)
  status=$?
  locks restore
  printf '%s\n' "$said" | tee "$record"
  executables '' | while read -r file; do
    sum=$(sha256sum <"$file")
    printf '%s built %s %s\n' "$mark" "${sum%% *}" "$file" >&3
  done
  printf '%s end %s\n' "$mark" "$status" >&3
  exit "$status"
fi

file=$(executables "$1\"" | tail -n 1)
shift
if [ -z "$file" ]; then
  printf '%s none\n' "$mark" >&3
  exit 0
fi
sum=$(sha256sum <"$file")
printf '%s start %s %s\n' "$mark" "${sum%% *}" "$file" >&3
"$file" "$@" 3>&-
status=$?
printf '%s end %s\n' "$mark" "$status" >&3
exit "$status"
