#!/usr/bin/env bash
# Counts the instructions of a job that is put, taken and finished, with callgrind, beside 1000 waiting
# jobs and beside many. Fails if many make it take more than 1.5 times as many:
#
#   durable/bench/waiting.sh           beside 1 000 000
#   durable/bench/waiting.sh 100000
#
# Each file is filled without callgrind. Then so many jobs are done and twice as many, and the difference
# of the two counts is what these jobs take.
set -eu -o pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")"

command -v valgrind >/dev/null || { echo 'valgrind is not installed'; exit 2; }

readonly MANY=${1:-1000000}
# Whole numbers of callers of the program.
readonly FEW=1024 JOBS=512

target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --release --quiet --locked --features callgrind --bin ours --target-dir "$target"
scratch=$(mktemp -d)
# shellcheck disable=SC2064 # as it is now
trap "rm -r '$scratch'" EXIT

# Prints how many instructions so many jobs take in a file.
collect() {
    local output
    output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$target/release/ours" beside "$2" "$1" 2>&1) || { echo "$output" >&2; return 1; }
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$output"
}

# Prints how many a job takes beside so many that wait.
count() {
    local file=$scratch/$1.db once twice
    "$target/release/ours" fill "$1" "$file" >&2
    once=$(collect "$file" "$JOBS")
    twice=$(collect "$file" "$((2 * JOBS))")
    echo "$(((twice - once) / JOBS))"
}

few=$(count "$FEW")
many=$(count "$MANY")
awk "BEGIN {
    printf \"%d instructions a job beside $FEW, %d beside $MANY: %.2f times, of at most 1.5\n\",
        $few, $many, $many / $few
    exit $many > 1.5 * $few
}"
