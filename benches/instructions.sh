#!/usr/bin/env bash
# Counts the instructions of an operation with callgrind, on one worker:
#
#   benches/instructions.sh            in the working tree
#   benches/instructions.sh COMMIT     and beside it in another commit
#   benches/instructions.sh --check    and beside it the budget: fails where they differ too much
#   benches/instructions.sh --budget   in the commit checked out, and writes that as the budget
#   benches/instructions.sh --compare BUDGET COUNTS    what --check says of these two files
#
# Each case runs a number of times and twice as often, and the difference of the two counts is what
# an operation takes. Another commit is built with the same program,
# benches/speed/src/bin/instructions.rs.
set -eu -o pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The counts at a commit, which it names, and the tools that they were made with.
readonly BUDGET=benches/instructions.budget
# Per cent by which a case may differ from its budget.
readonly TOLERANCE=3

# How often each case runs: whole bursts and batches of the program, and so often that the few
# thousand instructions by which two runs differ are less than 0.1 % of the count. `timer` runs less
# often because its turns take time.
readonly CASES='
  tell      256000
  ping_pong  64000
  ask        64000
  spawn      64000
  task       64000
  yield      64000
  outside   256000
  timer       6400
  by_hand   256000
  handlers  256000
'

# Builds the program for the greenroom of a commit, and prints where it is. What it needs of other
# crates is kept for the next commit, but apart from that of the working tree: cargo names the programs
# of two trees alike, and tells by the times of the files alone which one it has.
build_commit() {
    # Outside of this folder: an older commit is no member of its workspace.
    local tree=${XDG_CACHE_HOME:-$HOME/.cache}/greenroom/instructions
    mkdir -p "${tree%/*}"
    # One build at a time, so that none changes the other's tree.
    exec 9>"$tree.lock"
    flock 9
    rm -rf "$tree"
    git worktree add --quiet --force --detach "$tree" "$1"
    # shellcheck disable=SC2064 # as it is now
    trap "git worktree remove --force '$tree'" EXIT
    rm -rf "$tree/benches/speed"
    mkdir -p "$tree/benches/speed"
    cp -R benches/speed/{Cargo.toml,Cargo.lock,src} "$tree/benches/speed"
    # Without --locked, since the commit may depend on less or more than Cargo.lock has.
    benches/speed/build instructions "$tree" "$scratch/build" --quiet
}

# Prints how many instructions a program takes for a case that runs so often.
collect() {
    local output
    output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1) \
        || { echo "$output" >&2; return 1; }
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$output"
}

# Prints how many an operation of a program takes, case by case.
count() {
    local case times once twice
    while read -r case times; do
        [ -n "$case" ] || continue
        once=$(collect "$1" "$case" "$times")
        twice=$(collect "$1" "$case" "$((2 * times))")
        awk "BEGIN { printf \"%-10s %8.1f\n\", \"$case\", ($twice - $once) / $times }"
    done <<<"$CASES"
}

# Counts in the working tree.
count_here() {
    local program
    program=$(benches/speed/build instructions . "$target/speed" --quiet --locked)
    count "$program" | tee "$scratch/here"
}

# Counts in a commit.
count_there() {
    local program
    program=$(build_commit "$1")
    echo "in $1:"
    count "$program" | tee "$scratch/there"
    echo 'here:'
}

# Prints the counts of two files beside each other, the first of which is called so. Fails if they
# differ too much in a case, or if a case is in one of them only. The enum by hand is code of a user,
# and only what `handlers!` is held against.
compare() {
    awk -v title="$3" -v tolerance="$TOLERANCE" '
        function row(name, before, now, change, how) {
            printf "%-10s %12s %12s %9s  %s\n", name, before, now, change, how
            if (how) differ = 1
        }
        BEGIN { row("case", title, "here") }
        /^#/ || $1 == "by_hand" { next }
        NR == FNR { before[$1] = $2; next }
        !($1 in before) { row($1, "-", $2, "", "new"); next }
        {
            change = 100 * ($2 / before[$1] - 1)
            how = change > tolerance ? "slower" : change < -tolerance ? "faster" : ""
            row($1, before[$1], $2, sprintf("%+.2f %%", change), how)
            delete before[$1]
        }
        END {
            for (name in before) row(name, before[name], "-", "", "gone")
            exit differ
        }
    ' "$1" "$2"
}

# Fails if `handlers!` takes more than an enum by hand.
twins() {
    awk -v tolerance="$TOLERANCE" '
        { count[$1] = $2 }
        END {
            change = 100 * (count["handlers"] / count["by_hand"] - 1)
            printf "handlers!, beside an enum by hand: %+.2f %%\n", change
            exit change > tolerance
        }
    ' "$1"
}

# Compares two files, and prints what to do if they differ.
hold_against() {
    compare "$@" && return
    echo
    echo "Slower by more than $TOLERANCE %: make it as fast again; or, if it is worth the price,"
    echo 'commit it, write the budget anew (benches/instructions.sh --budget), commit that in the'
    echo 'same change, with a row in docs/decisions/budgets.md.'
    echo 'Faster, new or gone: write the budget anew too, so that it catches what comes next.'
    return 1
}

# What a count depends on besides the sources. The CPU is not named: without AVX2 glibc's memcpy
# takes 1 % more of `spawn`, and nothing of the others.
tools() {
    echo "$(rustc -V), $(valgrind --version), $(getconf GNU_LIBC_VERSION), $(uname -m)"
}

# With other tools than those of the budget its commit is counted again.
check() {
    local commit
    if grep -qxF "# tools  $(tools)" "$BUDGET"; then
        count_here
        twins "$scratch/here"
        hold_against "$BUDGET" "$scratch/here" budget
        return
    fi
    commit=$(sed -n 's/^# commit //p' "$BUDGET")
    grep '^# tools' "$BUDGET"
    echo "made the budget, and these are $(tools): its commit is counted again."
    if ! git rev-parse --verify --quiet "$commit^{commit}" >/dev/null; then
        echo "$commit is not in this clone. If the clone is shallow,"
        echo "'git fetch --unshallow' brings it; else it is lost: write the budget anew."
        return 77
    fi
    count_there "$commit"
    count_here
    twins "$scratch/here"
    hold_against "$scratch/there" "$scratch/here" "${commit:0:10}"
}

write_budget() {
    if [ -n "$(git status --porcelain -- src Cargo.toml benches/speed)" ]; then
        echo 'Commit the sources first: the budget names the commit that has these counts.'
        return 1
    fi
    count_here
    {
        echo '# Instructions an operation, against which .ci/run holds the sources;'
        echo '# written by benches/instructions.sh --budget.'
        echo "# commit $(git rev-parse HEAD)"
        echo "# tools  $(tools)"
        cat "$scratch/here"
    } >"$BUDGET"
    echo "Commit $BUDGET on top of that commit, which it names: amended, it would be lost."
}

if [ "${1:-}" = --compare ]; then
    hold_against "$2" "$3" budget
    exit
fi
command -v valgrind >/dev/null || { echo 'valgrind is not installed'; exit 2; }

# Both programs must differ in greenroom alone, and be built as Cargo.toml says.
unset CARGO_BUILD_TARGET RUSTFLAGS "${!CARGO_PROFILE_RELEASE_@}"
mkdir -p "${CARGO_TARGET_DIR:-target}/instructions"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
scratch=$target/instructions
case ${1:-} in
    '') count_here ;;
    --check) check ;;
    --budget) write_budget ;;
    *)
        commit=$(git rev-parse --verify --quiet "$1^{commit}") \
            || { echo "no such commit: $1"; exit 2; }
        count_there "$commit"
        count_here
        compare "$scratch/there" "$scratch/here" "$1" || true
        ;;
esac
