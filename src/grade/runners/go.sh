# build BINARY CACHE GO FLAG…   makes the test binary of the package in this folder, and prints the name
#                               and the folder of every package in it
# run BINARY ARGUMENT…          runs it
# Standard input holds the mark of our records; descriptor 3 takes them. Neither is open in what is
# started here.
read -r mark
exec </dev/null
mode=$1 binary=$2
shift 2

record() {
  sum=$(sha256sum <"$binary")
  printf '%s %s %s %s\n' "$mark" "$1" "${sum%% *}" "$binary" >&3
}

if [ "$mode" = build ]; then
  cache=$1 go=$2
  shift 2
  # What `prepare` compiled is used where it lies; what is new comes beside it.
  [ -e "$GOCACHE" ] || [ ! -d "$cache" ] || cp -rs "$cache" "$GOCACHE"
  "$go" test -c -o "$binary" "$@" . 3>&-
  status=$?
  if [ "$status" = 0 ]; then
    "$go" list -deps -test -f '{{with .Module}}package {{$.ImportPath}}	{{$.Dir}}{{end}}' "$@" . 3>&-
    status=$?
  fi
  [ ! -f "$binary" ] || record built
elif [ -f "$binary" ]; then
  record start
  "$binary" "$@" 3>&-
  status=$?
else
  printf '%s none\n' "$mark" >&3
  exit 0
fi
printf '%s end %s\n' "$mark" "$status" >&3
exit "$status"
