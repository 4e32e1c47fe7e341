# REPORT PROGRAM ARGUMENT…   runs the program; then hands on the report, or with a slash at the end of
# REPORT every report in that folder.
# Standard input holds the mark of our records; descriptor 3 takes them. Neither is open in what is
# started here.
read -r mark
exec </dev/null
report=$1
shift
printf '%s start\n' "$mark" >&3

# Calls $1 with each report that is there.
reports() {
  case $report in
  */) for file in "$report"*.xml; do [ -e "$file" ] || [ -L "$file" ] && "$1" "$file"; done ;;
  *) [ -e "$report" ] || [ -L "$report" ] && "$1" "$report" ;;
  esac
}

refuse() {
  printf '%s early\n' "$mark" >&3
  exit 98
}

hand_on() {
  printf '%s file\n' "$mark" >&3
  # No link and no pipe: what stands there was made by the program.
  [ -f "$1" ] && [ ! -L "$1" ] && head -c 33554432 "$1" >&3
  printf '\n%s shut\n' "$mark" >&3
}

reports refuse
"$@" 3>&-
status=$?
reports hand_on
printf '%s end %s\n' "$mark" "$status" >&3
exit "$status"
