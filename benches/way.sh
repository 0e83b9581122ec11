#!/usr/bin/env bash
# Prints which files of src a message goes through, in a debug build on one worker:
#
#   benches/way.sh            each way, with what ARCHITECTURE.md says of its files
#   benches/way.sh --check    and fails if that lists other files, or if a way has too many
#
# A file is on a way if the way enters one of its functions. callgrind tells that of
# benches/speed/src/bin/way.rs, whose ways are:
#
#   tell       from the call of a `tell` by a task, to an actor that waits, until it returns
#   receive    from there until the actor has the message
#   ask        the polls of an ask with a timeout, its drop, and the reply
#   turn       from the handling of a message to that of the next one
#   restart    the same, of an actor that panics and is restarted in between
#
# A way is listed without the files of those above it.
set -eu -o pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The ways that ARCHITECTURE.md has, and how many files each may have beyond those above it. A part of
# the files of `receive` is listed.
readonly MOST='
  tell     16
  receive  -
  ask      6
  restart  8
'

# Prints the files of src that a way enters.
files() {
    rm -f "$scratch/$1".*
    valgrind --tool=callgrind --callgrind-out-file="$scratch/$1" --dump-instr=yes --compress-strings=no \
        --compress-pos=no --zero-before='way::begin' --dump-before='way::end' "$program" "$1" \
        >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; return 1; }
    # A row is an instruction: its address, its line and its cost; the one after `calls=` is what was
    # called. The code of a macro belongs to the program. The files come from addr2line, as valgrind
    # takes a row for the file of the row before if both have the same line. Line 0 is no code.
    awk '
        /^fn=/ { is_ours = /greenroom::/ && !/^fn=<?way::/; next }
        /^calls=/ { getline; next }
        /^0x/ && $3 > 0 && is_ours { print $1 }
    ' "$scratch/$1".[0-9]* | sort -u | addr2line -e "$program" | awk -F: -v src="$PWD/src/" '
        $2 > 0 && index($1, src) == 1 { print substr($1, length(src) + 1) }
    ' | sort -u
}

# Prints a row for each file of each way: the way and the file.
find_ways() {
    local way
    : >"$scratch/known"
    for way in tell receive ask turn restart; do
        files "$way" >"$scratch/files"
        comm -23 "$scratch/files" "$scratch/known" | sed "s/^/$way /"
        [ "$way" = ask ] && continue
        sort -u -o "$scratch/known" "$scratch/known" "$scratch/files"
    done
}

# Prints the ways of a file of such rows in the order and with the words of ARCHITECTURE.md. Fails if
# they are others than there, or too long.
hold_against() {
    awk -v most="$MOST" '
        function fail(text) { print "  " text; failed = 1 }
        BEGIN {
            count = split(most, words)
            for (i = 1; i < count; i += 2) limit[words[i]] = words[i + 1]
        }
        FILENAME != "ARCHITECTURE.md" {
            found[$1, $2] = 1
            total[$1]++
            if ($1 ~ /tell|receive/) received[$2] = 1
            next
        }
        /^## / { is_section = /The path of a message/ }
        !is_section { next }
        /^[a-z]+:/ { way = $1; sub(":", "", way); head[way] = $0; ways[++last] = way }
        /^```$/ { way = "" }
        way && /^  [a-z_\/]+\.rs / { listed[way, ++rows[way]] = $1 }
        way && rows[way] { text[way, rows[way]] = text[way, rows[way]] $0 "\n" }
        END {
            for (i = 1; i <= last; i++) {
                way = ways[i]
                is_part = limit[way] == "-"
                printf "%s: %d files%s\n", head[way], total[way], is_part ? "" : ", of at most " limit[way]
                for (row = 1; row <= rows[way]; row++) {
                    file = listed[way, row]
                    printf "%s", text[way, row]
                    if (!(is_part ? file in received : (way, file) in found)) fail("not on this way: " file)
                    delete found[way, file]
                }
                for (key in found) {
                    split(key, parts, SUBSEP)
                    if (parts[1] != way) continue
                    if (is_part) print "  " parts[2]; else fail("not in ARCHITECTURE.md: " parts[2])
                }
                if (!is_part && total[way] > limit[way]) fail("too many files")
                delete limit[way]
            }
            for (way in limit) fail("not in ARCHITECTURE.md: the way of " way)
            exit failed
        }
    ' "$1" ARCHITECTURE.md
}

for tool in valgrind addr2line; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed"; exit 2; }
done
unset CARGO_BUILD_TARGET RUSTFLAGS "${!CARGO_PROFILE_DEV_@}"
target=${CARGO_TARGET_DIR:-target}/speed
scratch=$target/way
program=$target/debug/way
mkdir -p "$scratch"
cargo build --quiet --locked --manifest-path benches/speed/Cargo.toml --bin way --target-dir "$target"
find_ways >"$scratch/found"
case ${1:-} in
    '') hold_against "$scratch/found" || true ;;
    --check) hold_against "$scratch/found" ;;
    *) echo "usage: benches/way.sh [--check]"; exit 2 ;;
esac
