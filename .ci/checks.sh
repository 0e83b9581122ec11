#!/usr/bin/env bash
# The checks of .ci/run, one function each: `bash .ci/checks.sh NAME` runs one of them.
set -eu -o pipefail

readonly PEERS=benches/peers/Cargo.toml COMPARISON=benches/comparison/Cargo.toml
readonly SDL=examples/sdl/Cargo.toml WINIT=examples/winit/Cargo.toml
readonly TOKIO=tokio/Cargo.toml MISTAKES=tests/mistakes/Cargo.toml SPEED=benches/speed/Cargo.toml
# The tests of behaviour, a program for each subject.
readonly BEHAVIOUR='--test actors --test supervision --test services --test threads --test runtime
    --test simulation'
readonly BUDGET=benches/instructions.budget
# These builds are not measured, so they are compiled quickly.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_DEBUG=false
# The same for SQLite.
export CFLAGS=-O0

format() {
    local manifest
    # With the packages outside the workspace.
    while read -r manifest; do
        cargo fmt --check --manifest-path "$manifest" || { echo "$manifest is not formatted"; return 1; }
    done < <(git ls-files 'Cargo.toml' '*/Cargo.toml')
}

clippy() {
    cargo clippy --locked --all-targets -- -D warnings
    cargo clippy --locked --all-targets --manifest-path "$SPEED" --target-dir target/speed \
        -- -D warnings
}

clippy_peers() {
    cargo clippy --locked --all-targets --manifest-path "$PEERS" --target-dir target/peers \
        -- -D warnings
}

clippy_comparison() {
    cargo clippy --locked --all-targets --all-features --manifest-path "$COMPARISON" \
        --target-dir target/comparison -- -D warnings
}

clippy_sdl() {
    cargo clippy --locked --all-targets --manifest-path "$SDL" --target-dir target/sdl \
        -- -D warnings
}

clippy_winit() {
    cargo clippy --locked --all-targets --manifest-path "$WINIT" --target-dir target/winit \
        -- -D warnings
}

clippy_http() {
    cargo clippy --locked --all-targets -p greenroom-http -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps -p greenroom-http
}

clippy_cluster() {
    cargo clippy --locked --all-targets --all-features -p greenroom-cluster -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --all-features -p greenroom-cluster
}

clippy_tokio() {
    cargo clippy --locked --all-targets --manifest-path "$TOKIO" --target-dir target/tokio \
        -- -D warnings
}

# The library with its models. No other target has code for them.
clippy_loom() {
    RUSTFLAGS='--cfg greenroom_loom' \
        cargo clippy --locked --profile test --lib --target-dir target/loom -- -D warnings
}

# The form of the workflows, which run elsewhere, and the names in them.
workflows() {
    if ! "${LINTER:-none}/bin/check-jsonschema" --version; then
        echo 'check-jsonschema, of PyPI, is not installed'
        return 77
    fi
    "$LINTER/bin/yamllint" --strict -d '{extends: default, rules: {line-length: {max: 120}}}' .github
    "$LINTER/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    workflows_call_checks
}

# Each job ends with one command of .ci, and the check that it names exists.
workflows_call_checks() {
    local command name jobs calls=0
    while read -r command name; do
        case $name in
            '' | --all) ;;
            *) declare -F "$name" || { echo "no such check: $command $name"; return 1; } ;;
        esac
        calls=$((calls + 1))
    done < <(sed -n 's|^ *- run: bash \(\.ci/.*\)$|\1|p' .github/workflows/*.yml)
    jobs=$(cat .github/workflows/*.yml | grep -c '^ *runs-on:')
    echo "$calls commands of .ci in $jobs jobs"
    [ "$calls" = "$jobs" ]
}

# What the checks below run, while other checks leave a core.
build() {
    cargo test --no-run
    tests_release --no-run
    cargo build --locked --release --examples
}

# The command that README.md names.
tests() {
    cargo test
}

# Without the examples, of which `code_search` needs Unix.
tests_anywhere() {
    cargo test --locked --lib $BEHAVIOUR --test large_futures --test memory --test sim_zoo \
        --test stress
}

# Each scenario in all of its homes, with every seed, and on every number of workers.
tests_all() {
    cargo build --locked --examples
    GREENROOM_MATRIX=all cargo test --locked $BEHAVIOUR
}

# The smaller tests, optimized as users build and not as benches do, which takes twice as long.
tests_release() {
    cargo test --locked --release --lib --test large_futures --test memory --test sim_zoo \
        --test stress "$@"
}

# tests/code_search runs an example, which `cargo test` builds only without a list of targets.
tests_release_all() {
    cargo build --locked --release --examples
    GREENROOM_MATRIX=all cargo test --locked --release --lib --tests
}

# The preconditions of `std`'s unsafe functions, in an optimized build.
ub_checks() {
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zub-checks=yes
    cargo build --locked --release --examples --target-dir target/ub
    GREENROOM_MATRIX=all cargo test --locked --release --lib --tests --target-dir target/ub
}

docs() {
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items \
        --all-features
}

# What the features add. All else is checked without them.
features() {
    cargo clippy --locked --lib --tests --all-features -- -D warnings
    cargo test --locked --all-features --lib spans
    cargo test --locked --all-features --doc tracer
    cargo test --locked --all-features --doc tokio
    cargo test --locked --all-features --test on_tokio
}

# What the compiler says of likely mistakes. Each compiler says it in other words.
mistakes() {
    local here output
    here=$(rustc --version)
    # The programs are built without the network, in the directory of the test.
    export CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$PWD/target/mistakes
    output=$(cargo test --locked --manifest-path "$MISTAKES" -- --nocapture 2>&1) \
        || { echo "$output"; return 1; }
    echo "$output"
    if grep -q '^SKIPPED' <<<"$output"; then
        echo "the errors are those of another compiler than $here"
        return 77
    fi
}

# The number of crates in a default build, greenroom included.
crates() {
    local count
    cargo tree --locked -e normal,build --prefix none | sort -u
    count=$(cargo tree --locked -e normal,build --prefix none | sort -u | wc -l)
    echo "$count crates, of at most 13"
    [ "$count" -le 13 ]
}

# The package has the documents for users, and nothing that is only for the project.
package() {
    local listed paper
    listed=$(cargo package --locked --allow-dirty --list)
    echo "$listed"
    for paper in README.md ARCHITECTURE.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT SECURITY.md; do
        grep -qx "$paper" <<<"$listed" || { echo "not in the package: $paper"; return 1; }
    done
    if grep -E '^(\.ci|\.github|benches/(comparison|peers|speed)|examples/(sdl|winit)|cluster|http|tokio|tests/mistakes)/' <<<"$listed"; then
        echo 'in the package, though it should not be'
        return 1
    fi
}

# Models that take long with two preemptions: most of them minutes.
readonly SLOW_MODELS='
    model_11_a_push_from_outside_finds
    model_12_entry_in_the_slot
    model_12_entry_in_the_ring
    model_17_a_shutdown_settles_a
    model_17_an
    model_57_letters
'

# Every model, the slow ones with one preemption. `loom_all` also checks that each model finds its
# mutations: there are about a hundred, and each is another run of a model.
loom() {
    local skipped=(--skip loom_mutants_are_caught) name
    for name in $SLOW_MODELS; do skipped+=(--skip "$name"); done
    models 2 loom "${skipped[@]}"
    # shellcheck disable=SC2086 # a word each
    models 1 $SLOW_MODELS
}

loom_all() {
    models 2 loom
}

# The models of these names, with this number of preemptions.
models() {
    local preemptions=$1
    shift
    LOOM_MAX_PREEMPTIONS=$preemptions RUSTFLAGS='--cfg greenroom_loom' \
        cargo test --locked --release --lib --target-dir target/loom -- "$@"
}

# Two threads at a few instructions each, and the fences without which the tests must fail. x86
# hides the other fences: a locked instruction is beside each.
litmus() {
    # One test at a time: each has two threads, and each thread needs a core.
    export RUSTFLAGS='--cfg greenroom_mutants' GREENROOM_LITMUS_ROUNDS=2000000 RUST_TEST_THREADS=1
    local run=(cargo test --locked --release --lib --target-dir target/mutants)
    "${run[@]}" litmus
    must_find notify_without_fence 'a wake-up was lost' "${run[@]}" litmus_a_push_is_not_missed
    must_find hold_off_without_fence 'a wake-up was lost' "${run[@]}" by_a_worker_that_holds_off
    must_find slot_claimed_without_fence 'was taken once' "${run[@]}" litmus_slot
}

# Passes if the command, with this mutation built in, fails with this text.
must_find() {
    local fault=$1 text=$2 status=0
    shift 2
    GREENROOM_MUTANT=$fault "$@" >"target/$fault.log" 2>&1 || status=$?
    if [ "$status" = 0 ] || ! grep -q "$text" "target/$fault.log"; then
        tail -n 40 "target/$fault.log"
        echo "not found: $fault, status $status"
        return 1
    fi
    echo "found: $fault, $(grep -c "$text" "target/$fault.log") times '$text'"
}

# Compares the hot paths with their budget. First checks that a case outside of it would be seen.
instructions() {
    local change wanted status
    while read -r change wanted; do
        status=0
        awk -v change="$change" '$1 == "tell" { $2 *= change } { print }' "$BUDGET" \
            | benches/instructions.sh --compare "$BUDGET" - >/dev/null || status=$?
        echo "tell at $change of its budget: status $status, and $wanted is wanted"
        [ "$status" = "$wanted" ]
    done <<'CHANGES'
1.05 1
1.02 0
0.98 0
0.95 1
CHANGES
    benches/instructions.sh --check
}

# The library's own tests, and the stress test of every part. Without those of tests/memory.rs that
# take minutes here.
asan() {
    asan_tests greenroom_uncached --lib --test memory --test stress -- \
        --skip a_million_restarts --skip a_job_that_waits --skip a_request_that_waits \
        --skip a_restartable_actor_takes
}

asan_all() {
    GREENROOM_MATRIX=all asan_tests greenroom_uncached --tests
}

# With the block cache on: a use of a cached block is seen.
asan_kept() {
    GREENROOM_MATRIX=all asan_tests greenroom_poisoned --tests
}

# These tests under AddressSanitizer. The cache is off or poisoned; otherwise no use after a free
# would be seen.
asan_tests() {
    local host cfg=$1 dir=target/asan
    shift
    host=$(rustc -vV | sed -n 's/^host: //p')
    [ "$cfg" = greenroom_uncached ] || dir=target/asan_kept
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg $cfg"
    export ASAN_OPTIONS=detect_stack_use_after_return=1 GREENROOM_STRESS_ROUNDS=100
    export LSAN_OPTIONS=suppressions=$PWD/.ci/lsan.supp:print_suppressions=0
    [[ " $* " != *' --tests '* ]] ||
        cargo build --locked --target "$host" --examples --target-dir "$dir"
    cargo test --locked --target "$host" --target-dir "$dir" "$@"
}

# The behaviour tests that run under ThreadSanitizer: those in which threads share something.
# Without those that use locks of `std`, other executors, or a limit of threads or cores, and those
# that take too long.
readonly TSAN_TESTS='
    actor_ address_map:: ask:: bounded_send:: bugs_lifetimes:: bugs_mailbox:: bugs_panics::
    children:: deadlock:: detached:: hosted:: mailbox_ nested_ pinned_threads:: quiescence::
    requests:: runtime_ shutdown_ task_wakers:: unblock:: undelivered:: watching::
    --skip another_executor --skip bad_input --skip bugs_runtime:: --skip chain_of_parents
    --skip ctrl_c:: --skip during_a_shutdown --skip fork:: --skip from_many_threads
    --skip many_wakes_before_its_turn --skip net:: --skip origins:: --skip policies::
    --skip requests::example --skip simulated --skip smol --skip stats:: --skip tokio
'

# Every part of greenroom under ThreadSanitizer. Then memory orders that are too weak, which it must
# report. `std` is not instrumented: src/sync/tsan.rs tells what its locks order, and .ci/tsan.supp
# what is not a race.
tsan() {
    local host fault
    host=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1 GREENROOM_MATRIX=threads TSAN_OPTIONS=suppressions=$PWD/.ci/tsan.supp
    export RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer'
    RUSTFLAGS+=' --cfg greenroom_tsan --cfg greenroom_uncached --cfg greenroom_mutants'
    local run=(cargo test --locked --target "$host" --target-dir target/tsan)
    GREENROOM_STRESS_ROUNDS=2000 "${run[@]}" --test stress -- --nocapture
    # shellcheck disable=SC2086 # a word each
    "${run[@]}" $BEHAVIOUR -- --nocapture $TSAN_TESTS
    for fault in cell_released_relaxed released_relaxed rested_relaxed oneshot_left_relaxed \
        lock_release; do
        GREENROOM_STRESS_ROUNDS=200 must_find "$fault" 'WARNING: ThreadSanitizer: data race' \
            "${run[@]}" --test stress -- --nocapture
    done
}

# The oldest compiler that Cargo.toml allows, if it is installed.
rust_version() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! cargo "+$oldest" --version; then
        echo "Rust $oldest is not installed"
        return 77
    fi
    cargo "+$oldest" check --locked --all-targets --target-dir target/oldest
}

# The library for other systems than this one.
target_windows() {
    compiles_for x86_64-pc-windows-msvc
}

target_macos() {
    compiles_for aarch64-apple-darwin
}

target_arm64() {
    compiles_for aarch64-unknown-linux-gnu
}

# A target without threads is refused by a compile error.
target_wasm32() {
    local status=0
    has_target wasm32-unknown-unknown || return 77
    cargo check --locked --lib --target wasm32-unknown-unknown 2>target/wasm32.log || status=$?
    cat target/wasm32.log
    [ "$status" != 0 ] && grep -q 'greenroom needs threads' target/wasm32.log
}

compiles_for() {
    has_target "$1" || return 77
    cargo check --locked --lib --target "$1"
}

has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] && return
    echo "the toolchain here has no target $1"
    return 1
}

# Known vulnerabilities, licences and origins of the dependencies. It reads a public list.
deny() {
    if ! cargo deny --version; then
        echo 'cargo-deny is not installed'
        return 77
    fi
    cargo deny --locked check
}

# Changes that break users of the last release.
semver() {
    local last
    if ! cargo semver-checks --version; then
        echo 'cargo-semver-checks is not installed'
        return 77
    fi
    if ! last=$(git describe --tags --abbrev=0 --match 'v*'); then
        echo 'no release has a tag yet, so there is nothing to compare with'
        return 77
    fi
    cargo semver-checks --baseline-rev "$last"
}

# Compares the working tree with an older greenroom: the one check that judges by elapsed time, which
# it may since both run here, in turns. Both are compiled as the comparison with peers is.
speed() {
    cargo test --locked --manifest-path "$SPEED" --target-dir target/speed
    unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS CARGO_PROFILE_RELEASE_DEBUG
    CARGO_TARGET_DIR=$PWD/target/speed benches/speed/run
}

# Builds the comparison, and checks that a short case of each peer and some points of `scaling`
# print figures. The values do not matter: an optimized build of all peers would take minutes.
peers() {
    local peer case
    cargo build --locked --manifest-path "$PEERS" --target-dir target/peers
    while read -r case peer; do
        figures peers case "$peer" "$case"
    done <<'SHORT'
ask greenroom
ask tokio
ask smol
ask actix
ask ractor
ask kameo
ask xtra
ask acto
task_yield smolscale
task_yield nexosim
task_recursive rayon
SHORT
    for peer in greenroom tokio; do
        figures scaling one "$peer" 100 2
        figures scaling one "$peer" address
    done
}

# Prints the figures of a program of the comparison for these arguments. Some peers hang now and
# then (benches/peers/README.md), so each one except greenroom has three tries.
figures() {
    local words="$*" tries=3 figures=
    [[ " $words " != *' greenroom '* ]] || tries=1
    until [ -n "$figures" ] || [ $((tries--)) = 0 ]; do
        # shellcheck disable=SC2145 # the first word ends a path
        figures=$(timeout 40 target/peers/debug/"$@") || figures=
    done
    echo "$words: $figures"
    [ -n "$figures" ]
}

# Runs the programs of docs/comparison.md to their end, and compares the page with them.
comparison() {
    CARGO_TARGET_DIR=$PWD/target/comparison benches/comparison/run --check
}

# Runs every example to its end. Those with arguments have their own function.
examples() {
    local path name
    cargo build --locked --release --examples
    for path in examples/*.rs examples/*/main.rs; do
        [ -e "$path" ] || continue
        name=${path#examples/} name=${name%.rs} name=${name%/main}
        echo "== $name"
        if declare -F "example_$name" >/dev/null; then
            "example_$name" "target/release/examples/$name"
        else
            timeout 60 "target/release/examples/$name"
        fi
    done
}

example_spool() {
    timeout 60 "$1" --svg target/spool.svg "$1"
}

# Copies the crate's lock file in two runs.
example_copy() {
    local scratch status=0
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$scratch'" EXIT
    timeout 60 "$1" --at-most=1000 Cargo.lock "$scratch/copy" || status=$?
    [ "$status" = 71 ]
    timeout 60 "$1" --debug-level=DEBUG Cargo.lock "$scratch/copy"
    cmp Cargo.lock "$scratch/copy"
}

example_supervise() {
    timeout 60 "$1" src
}

# Searches the crate's sources for a text that they contain and for one that they do not.
example_code_search() {
    local scratch status=0
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$scratch'" EXIT
    timeout 60 "$1" --index "$scratch/index" src 'pub struct Runtime' | tee "$scratch/hits"
    grep -q 'runtime/handle\.rs:[0-9]*: pub struct Runtime {$' "$scratch/hits"
    timeout 60 "$1" --index "$scratch/index" src 'no such words in these sources' || status=$?
    echo "status $status where nothing is found"
    [ "$status" = 1 ]
}

# Shrinks an image, and names a file that is none.
example_thumbnails() {
    local scratch status=0
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$scratch'" EXIT
    mkdir "$scratch/in"
    { printf 'P6\n300 200\n255\n'; head -c 180000 /dev/zero; } >"$scratch/in/black.ppm"
    cp Cargo.toml "$scratch/in"
    timeout 60 "$1" --size=30 "$scratch/in" "$scratch/out" || status=$?
    echo "status $status where a file is no image"
    [ "$status" = 1 ]
    grep -qx 'black.ppm 30 x 20' "$scratch/out/index.txt"
}

# Draws a run over the crate's sources, and checks that the picture is complete.
example_timeline() {
    timeout 60 "$1" src target/timeline.svg 2
    tail -n 1 target/timeline.svg | grep -qx '</svg>'
}

# The example with a window, on its own screens. The figures of `--bench` are only printed: the
# machine may be any, and it may be busy.
sdl() {
    cargo test --locked --release --manifest-path "$SDL" --target-dir target/sdl
    timeout --kill-after=10 60 xvfb-run -a -s '-screen 0 1280x1024x24' \
        target/sdl/release/life --bench
}

# The example with a loop of winit, on its own screens.
winit() {
    cargo test --locked --release --manifest-path "$WINIT" --target-dir target/winit
    timeout --kill-after=10 60 xvfb-run -a -s '-screen 0 1280x1024x24' target/winit/release/lamp
}

# The package beside tokio, over real sockets and with a real database, and its example.
tokio() {
    cargo test --locked --manifest-path "$TOKIO" --target-dir target/tokio
    timeout 60 cargo run --locked --manifest-path "$TOKIO" --target-dir target/tokio \
        --example axum_state
}

# The package greenroom-http, over real sockets.
http() {
    cargo test --locked -p greenroom-http
}

# The crowds of bad clients in full: 10 000 connections in turn, and 1000 at once.
http_all() {
    ulimit -n "$(ulimit -Hn)"
    cargo build --locked -p greenroom-http --examples
    GREENROOM_MATRIX=all cargo test --locked -p greenroom-http --test it crowds
}

# The page of actors in Chromium.
http_browser() {
    if ! command -v chromium; then
        echo 'chromium is not installed'
        return 77
    fi
    GREENROOM_BROWSER=chromium cargo test --locked -p greenroom-http --test it browser
}

# The comparison with servers on tokio is only built.
http_bench() {
    cargo clippy --locked --all-targets --manifest-path http/bench/Cargo.toml \
        --target-dir target/http_bench -- -D warnings
}

# The package greenroom-cluster: between nodes of a process, and between some processes.
cluster() {
    cargo test --locked --all-features -p greenroom-cluster
}

# Its random histories from 10 000 seeds, and all faults of processes and nets. Some need rights.
cluster_all() {
    local output
    GREENROOM_SEEDS=10000 cargo test --locked --release -p greenroom-cluster --test it model
    output=$(GREENROOM_FAULTS=all cargo test --locked -p greenroom-cluster --test processes 2>&1) \
        || { echo "$output"; return 1; }
    echo "$output"
    if grep -q '^SKIPPED' <<<"$output"; then return 77; fi
}

# The comparison with kameo and ractor_cluster: one short round. Its figures are reported, not checked.
cluster_bench() {
    cargo clippy --locked --all-targets --manifest-path cluster/bench/Cargo.toml \
        --target-dir target/cluster_bench -- -D warnings
    cargo run --locked --release --manifest-path cluster/bench/Cargo.toml \
        --target-dir target/cluster_bench -- run 1 1000
}

# Builds the fuzzers of a package without cargo-fuzz, and lets each run for a while. What they have
# found before is read by the package's own tests.
fuzz() {
    local host name package=$1
    shift
    host=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTFLAGS='--cfg fuzzing -Cpasses=sancov-module -Cdebug-assertions'
    for name in level=4 inline-8bit-counters pc-table trace-compares; do
        RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-$name"
    done
    cargo build --locked --release --manifest-path "$package/fuzz/Cargo.toml" --target "$host" \
        --target-dir "target/${package}_fuzz"
    for name; do
        rm -rf "target/${package}_fuzz/$name"
        mkdir "target/${package}_fuzz/$name"
        # What is new goes into the first folder.
        "target/${package}_fuzz/$host/release/$name" -runs=200000 -timeout=20 \
            -artifact_prefix="target/${package}_fuzz/$name-" \
            "target/${package}_fuzz/$name" "$package/fuzz/corpus/$name"
    done
}

http_fuzz() {
    fuzz http query envelope framing
}

cluster_fuzz() {
    fuzz cluster frames
}

miri() {
    local toolchain
    for toolchain in stable nightly; do
        if cargo "+$toolchain" miri --version; then
            MIRIFLAGS=-Zmiri-disable-isolation cargo "+$toolchain" miri test --locked --lib \
                --target-dir target/miri mailbox
            return
        fi
    done
    echo 'no toolchain here has the component miri'
    return 77
}

# The tests on a machine with a weaker memory model, if this is one.
arm64() {
    if [ "$(uname -m)" != aarch64 ]; then
        echo "foreign hardware (arm64): this machine is $(uname -m)"
        return 77
    fi
    tests_release
}

"$@"
