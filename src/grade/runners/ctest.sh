# build BUILD CTEST CMAKE FLAG…       configures this tree into BUILD, compiles it, and hands on its tests
# run BUILD REPORT CTEST EXPRESSION   runs the tests of these names, and hands on the report
# Both hand on the digests of what was built: after the build, before the run and after it.
# Standard input holds the mark of our records; descriptor 3 takes them. Neither is open in what is
# started here.
read -r mark
exec </dev/null
mode=$1 build=$2
shift 2
printf '%s start\n' "$mark" >&3

file() { printf '%s file\n' "$mark" >&3; }

shut() { printf '\n%s shut\n' "$mark" >&3; }

digests() {
  file
  find "$build" -type f \( -perm -100 -o -name '*.so*' -o -name '*.cmake' \) \
    ! -path '*/CMakeFiles/*' ! -path '*/Testing/*' -exec sha256sum {} + >&3
  shut
}

# What CMake or a test left for ctest to do before and after tests is not done.
spare() { rm -rf "$build/CTestCustom.cmake" "$build/CTestCustom.ctest"; }

if [ "$mode" = build ]; then
  ctest=$1 cmake=$2
  shift 2
  "$cmake" -S . -B "$build" "$@" >&2 3>&-
  status=$?
  if [ "$status" = 0 ]; then
    # What does not compile spares the rest.
    on=-k
    grep -q '^CMAKE_GENERATOR:INTERNAL=Ninja' "$build/CMakeCache.txt" && on=-k0
    "$cmake" --build "$build" --parallel 4 -- "$on" >&2 3>&-
    spare
    tests=$("$ctest" --test-dir "$build" --show-only=json-v1 3>&-)
    file
    printf '%s' "$tests" >&3
    shut
    digests
  fi
else
  report=$1 ctest=$2 expression=$3
  spare
  digests
  rm -rf "$report"
  "$ctest" --test-dir "$build" -R "$expression" --output-junit "$report" 3>&-
  status=$?
  file
  [ -f "$report" ] && [ ! -L "$report" ] && head -c 33554432 "$report" >&3
  shut
  digests
fi
printf '%s end %s\n' "$mark" "$status" >&3
exit "$status"
