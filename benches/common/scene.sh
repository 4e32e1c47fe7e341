# What benches/commands and benches/adapters share: a HOME and scenes in a temporary folder, and how a
# command is measured. Both read this file with `.`; $1 is their RUNS.

runs=${1:-20}
hangar=$(realpath "${HANGAR_BENCH_BIN:-target/release/hangar}")
python=$(command -v "${HANGAR_BENCH_PYTHON:-python3}" || true)
commit=$(git rev-parse --short HEAD)
# rustup finds its toolchains from the home folder of whoever runs this.
export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
for program in git hyperfine ssh-keygen; do
  command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
done
[ -x "$hangar" ] || { echo "no $hangar: run \`cargo build --release\`" >&2; exit 1; }

scene=$(mktemp -d)
trap 'rm -rf "$scene"' EXIT
# Programs in sandboxes run as another user when hangar is started by root.
chmod 755 "$scene"
export HOME=$scene/home XDG_CONFIG_HOME=$scene/home/.config XDG_DATA_HOME=$scene/home/.local/share
export XDG_CACHE_HOME=$scene/home/.cache GIT_CONFIG_NOSYSTEM=1 LC_ALL=C.UTF-8 NO_COLOR=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE SSH_AUTH_SOCK HANGAR_CONFIG HANGAR_NOW HANGAR_EXCHANGE || true

log() { printf '%s\n' "$*" >&2; }
row() { printf '| %s | %s |\n' "$1" "$2"; }

home() {
  mkdir -p "$HOME/.ssh" "$XDG_CONFIG_HOME/hangar"
  chmod 700 "$HOME/.ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$HOME/.ssh/id_ed25519"
  git config --global user.name alice
  git config --global user.email alice@example.com
  git config --global init.defaultBranch main
  {
    echo '[toolchain]'
    [ -z "$python" ] || echo "python = \"$python\""
  } >"$XDG_CONFIG_HOME/hangar/config.toml"
}

# Median and spread of a command, from hyperfine's report. The first argument is a command that runs
# before every measured run.
measure() {
  local prepare=$1
  shift
  # One column after the other: command, mean, stddev, median, user, system, min, max.
  hyperfine -N --style none --warmup 2 --runs "$runs" --prepare "$prepare" \
    --export-csv "$scene/figures.csv" "$*" >/dev/null 2>"$scene/hyperfine.log" ||
    { cat "$scene/hyperfine.log" >&2; return 1; }
  tail -n 1 "$scene/figures.csv" |
    awk -F, '{ n = NF; printf "%.1f %.1f %.1f\n", $(n-4) * 1000, $(n-1) * 1000, $n * 1000 }'
}

timed() {
  local what=$1 median least most
  shift
  log "measuring $what"
  read -r median least most < <(measure "$@")
  row "$what" "$median ms (from $least to $most)"
}

# The scene NAME in $scene: a repository (NAME), hidden tests that take one second (NAME-hidden), the
# right code (NAME-patch), and what the bare runner gets, all of it in one folder (NAME-bare). The task's
# key is NAME too. The second argument is the id of the hidden test; what follows are expressions of sed
# for what `hangar init` wrote into hangar.toml.
ready() {
  local name=$1 test=$2 digest
  shift 2
  cp -r "$scene/$name" "$scene/$name-bare"
  cp -r "$scene/$name-hidden/." "$scene/$name-patch/." "$scene/$name-bare"
  cd "$scene/$name"
  git init -q
  git add -A && git commit -q -m base
  "$hangar" init --yes --name alice >/dev/null
  [ $# = 0 ] || sed -i "${@/#/-e}" hangar.toml
  git add -A && git commit -q -m 'Set up hangar'
  "$hangar" task new Subtract --test-first --key "$name" -c '5 - 3 is 2' >/dev/null
  "$hangar" seal "$name" --from "../$name-hidden" --map "c1=$test" >/dev/null
  "$hangar" review "$name" --tests >/dev/null
  digest=$("$hangar" sealed show "$name" --json | grep -o 'sha256:[0-9a-f]*' | head -n 1)
  "$hangar" approve "$name" --digest "$digest" >/dev/null
  cp -r "../$name-patch/." .
  git add -A && git commit -q -m Subtract
}

# The bare runner, then hangar on the same: what NAME is called, a command before each bare run, and the
# bare command. The grade before is forgotten, so that each starts from the same state.
compare() {
  local name=$1 prepare=$2 id
  shift 2
  cd "$scene/$name-bare"
  timed "$name: bare runner, 1 s suite" "$prepare" "$@"
  cd "$scene/$name"
  id=$(git for-each-ref --format='%(refname:lstrip=3)' refs/hangar/tasks)
  timed "$name: \`hangar grade\`, 1 s suite" "git update-ref -d refs/hangar/grades/$id" "$hangar grade $name"
}

machine() {
  local cpu
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
  printf 'commit %s; %s, %s processors; Linux %s; %s on %s; %s runs, median (least to most)\n\n' \
    "$commit" "$cpu" "$(nproc)" "$(uname -r)" "$(stat -f -c %T "$scene")" "$(dirname "$scene")" "$runs"
}

exec_scene() {
  mkdir -p "$scene"/exec "$scene"/exec-patch "$scene"/exec-hidden/tests
  echo 'echo 0' >"$scene/exec/calc.sh"
  cat >"$scene/exec-patch/calc.sh" <<'EOT'
echo $(($1 - $2))
EOT
  cat >"$scene/exec-hidden/tests/sub.sh" <<'EOT'
#!/bin/sh
sleep 1
test "$(sh ./calc.sh 5 3)" = 2
EOT
  chmod +x "$scene/exec-hidden/tests/sub.sh"
  ready exec tests/sub.sh
}
