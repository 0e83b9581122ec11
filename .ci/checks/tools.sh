# shellcheck shell=bash
# Models, sanitizers, Miri and measurements.

readonly BUDGET=benches/instructions.budget

# Models that take longer than 15 seconds with two preemptions, and less with one.
readonly SLOW_MODELS='
    model_02_two_senders_of_two
    model_03_messages_and_reserved
    model_11_a_push_from_outside_finds
    model_12_entry
    model_17_a
    model_18_a_deadlock
    model_28_a_deadline_of_a_worker_blocked_from_outside
    model_29_a_place_whose_loop
    model_37_wake_ups_that_are_merged
    model_57_letters
'

# Every model, the slow ones with one preemption.
loom() {
    local skipped=(--skip loom_mutants_are_caught) name
    for name in $SLOW_MODELS; do skipped+=(--skip "$name"); done
    models 2 loom "${skipped[@]}"
    # shellcheck disable=SC2086 # a word each
    models 1 $SLOW_MODELS
}

# The same, and each mutation that a model must find, in another run of it.
loom_all() {
    loom
    models 2 loom_mutants_are_caught
}

# Every model with two preemptions.
loom_deep() {
    models 2 loom --skip loom_mutants_are_caught
}

# The models of these names, with this number of preemptions. Their code has no warnings.
models() {
    local preemptions=$1
    shift
    LOOM_MAX_PREEMPTIONS=$preemptions RUSTFLAGS='--cfg greenroom_loom -D warnings' \
        cargo test --locked --release --lib --target-dir target/loom -- "$@"
}

# Races of a few instructions, and the fences without which they must fail. Each test has two
# threads. x86 hides the other fences: a locked instruction is beside each.
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

# The library's own tests and the stress test under AddressSanitizer. Without those of
# tests/memory.rs that take minutes here.
asan() {
    GREENROOM_UNCACHED=1 asan_tests --lib --test memory --test stress -- \
        --skip a_million_restarts --skip a_job_that_waits --skip a_request_that_waits \
        --skip a_restartable_actor_takes
}

# All tests under AddressSanitizer, in every environment and with every seed.
asan_all() {
    GREENROOM_UNCACHED=1 GREENROOM_MATRIX=all asan_tests --tests
}

# The tests that allocate most under AddressSanitizer, with the block cache on. It has the build of
# `asan_all`. A use of a cached block is seen. The other tests use the same few places that cache.
asan_kept() {
    asan_tests --lib --test actors --test memory --test stress
}

# These tests under AddressSanitizer. The cache is off or poisoned; otherwise no use after a free
# would be seen.
asan_tests() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg greenroom_poisoned"
    export ASAN_OPTIONS=detect_stack_use_after_return=1 GREENROOM_STRESS_ROUNDS=100
    export LSAN_OPTIONS=suppressions=$PWD/.ci/lsan.supp:print_suppressions=0
    local to=(--locked --target "$host" --target-dir target/asan)
    # Some of these tests run an example, which Cargo builds only without a list of targets.
    [[ " $* " != *' --tests '* && " $* " != *' actors '* ]] \
        || cargo build --profile test --examples "${to[@]}"
    # A run takes half an hour, so it shows all that fails.
    cargo test --no-fail-fast "${to[@]}" "$@"
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
    --skip many_wakes_before_its_turn --skip net:: --skip on_any_executor --skip origins::
    --skip policies:: --skip requests::example --skip simulated --skip smol --skip stats::
    --skip time_blocked:: --skip tokio
'

# Every part under ThreadSanitizer, and weak memory orders that it must report. `std` is not
# instrumented: src/sync/tsan.rs tells what its locks order, and .ci/tsan.supp what is not a race.
tsan() {
    local host fault
    host=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1 GREENROOM_MATRIX=threads TSAN_OPTIONS=suppressions=$PWD/.ci/tsan.supp
    export RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer'
    RUSTFLAGS+=' --cfg greenroom_tsan --cfg greenroom_uncached --cfg greenroom_mutants'
    local run=(cargo test --locked --no-fail-fast --target "$host" --target-dir target/tsan)
    GREENROOM_STRESS_ROUNDS=2000 "${run[@]}" --test stress -- --nocapture
    # shellcheck disable=SC2086 # a word each
    "${run[@]}" $BEHAVIOUR -- --nocapture $TSAN_TESTS
    for fault in cell_released_relaxed released_relaxed rested_relaxed oneshot_left_relaxed \
        lock_release; do
        GREENROOM_STRESS_ROUNDS=200 must_find "$fault" 'WARNING: ThreadSanitizer: data race' \
            "${run[@]}" --test stress -- --nocapture
    done
}

# Tests of the mailbox under Miri, where it is installed.
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

# The instructions of the hot paths beside their budget. First it checks that a case outside of the
# budget would be seen.
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

# The ways of messages in ARCHITECTURE.md are those of a debug build.
ways() {
    benches/way.sh --check
}

# Throughput beside the commit in benches/speed/base. This is the one check that judges by elapsed
# time, which it may since both run here, in turns. Both are compiled as the comparison with peers is.
speed() {
    export CARGO_TARGET_DIR=$PWD/target/speed
    cargo test --locked --manifest-path "$SPEED" "$@"
    unset "${!CARGO_PROFILE_RELEASE_@}"
    benches/speed/run "$@"
}

# Compiles what `speed` runs, while other checks leave a core.
speed_build() {
    speed --no-run
}
