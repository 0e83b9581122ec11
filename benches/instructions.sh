#!/usr/bin/env bash
# Counts the instructions of an operation with callgrind: `benches/instructions.sh [COMMIT]`, for
# the working tree and, beside it, for another commit.
#
# The same benches/instructions.rs is built with both. Each case runs a number of times and twice as
# often, and the difference of the two counts is what an operation takes.
set -eu -o pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How often each case runs: whole bursts and batches of benches/instructions.rs, and so often that
# the few thousand instructions by which two runs differ are less than 0.1 % of the count. `timer`
# runs less often because its turns take time.
readonly CASES='
  tell      256000
  ping_pong  64000
  ask        64000
  spawn      64000
  task       64000
  yield      64000
  outside   256000
  timer       6400
'

# Builds the bench of the package here into a target directory, and prints where it is.
build() {
    local messages
    messages=$(cargo build --quiet --locked --release --bench instructions --target-dir "$1" \
        --message-format json)
    sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p' <<<"$messages"
}

# The same for a commit. What it needs of other crates is kept for the next commit, but apart from
# that of the working tree: cargo names the programs of two trees alike, and tells by the times of
# the files alone which one it has.
build_commit() {
    local tree=$1/tree
    rm -rf "$tree"
    git worktree add --quiet --force --detach "$tree" "$2"
    # shellcheck disable=SC2064 # as it is now
    trap "git worktree remove --force '$tree'" EXIT
    cp benches/instructions.rs "$tree/benches/"
    grep -qx 'name = "instructions"' "$tree/Cargo.toml" \
        || printf '\n[[bench]]\nname = "instructions"\nharness = false\n' >>"$tree/Cargo.toml"
    (cd "$tree" && build "$1/build")
}

# Prints how many instructions a program takes for a case that runs so often.
collect() {
    local output
    output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1) \
        || { echo "$output" >&2; return 1; }
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$output"
}

# Prints how many an operation takes.
count() {
    local once twice
    once=$(collect "$1" "$2" "$3")
    twice=$(collect "$1" "$2" "$((2 * $3))")
    awk "BEGIN { printf \"%.1f\", ($twice - $once) / $3 }"
}

command -v valgrind >/dev/null || { echo 'valgrind is not installed'; exit 2; }

# Both programs must differ in greenroom alone.
unset CARGO_BUILD_TARGET RUSTFLAGS
mkdir -p "${CARGO_TARGET_DIR:-target}/instructions"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
there=
if [ "$#" != 0 ]; then
    commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "no such commit: $1"; exit 2; }
    there=$(build_commit "$target/instructions" "$commit")
fi
here=$(build "$target")

printf '%-10s %12s %12s %9s\n' 'case' "${1:-}" 'here' ''
while read -r case times; do
    [ -n "$case" ] || continue
    now=$(count "$here" "$case" "$times")
    if [ -z "$there" ]; then
        printf '%-10s %12s %12s\n' "$case" '' "$now"
    else
        before=$(count "$there" "$case" "$times")
        change=$(awk "BEGIN { printf \"%+.2f\", 100 * ($now / $before - 1) }")
        printf '%-10s %12s %12s %7s %%\n' "$case" "$before" "$now" "$change"
    fi
done <<<"$CASES"
