# build RECORD PROGRAM ARGUMENT…   runs cargo, keeps and prints its JSON
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

if [ "$mode" = build ]; then
  "$@" >"$record" 3>&-
  status=$?
  cat "$record"
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
