# shellcheck shell=bash
# Builds, tests and examples of the root package.

# Compiles what later checks run, while other checks leave a core.
build() {
    cargo test --no-run
    tests_release --no-run
}

# `cargo test`, which README.md names.
tests() {
    cargo test
}

# `cargo test` without the examples, of which `code_search` needs Unix.
tests_anywhere() {
    cargo test --locked --lib $BEHAVIOUR --test large_futures --test memory --test sim_zoo \
        --test stress
}

# Only greenroom is optimized. The other crates would take as long again.
readonly PLAIN_CRATES='profile.release.package."*".opt-level=0'

# The library's own tests and those of what depends on the compiler, optimized.
tests_release() {
    one_unit cargo test --locked --release --config "$PLAIN_CRATES" \
        --lib --test large_futures --test memory --test stress "$@"
}

# Compiles a crate as one unit. Otherwise it depends on the name of the folder what is compiled
# together, and so how often a large future is on a stack.
one_unit() {
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 "$@"
}

# The tests of unsafe code, optimized, with checks of what its functions demand. Builds that are not
# optimized have these checks, too: `asan_all` runs them in every environment. `large_futures` depends on
# the units that are compiled together: `tests_release` runs it.
ub_checks() {
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zub-checks=yes CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    cargo build --locked --release --config "$PLAIN_CRATES" --target-dir target/ub \
        --example chat --example requests
    cargo test --locked --release --no-fail-fast --config "$PLAIN_CRATES" --target-dir target/ub \
        --lib --test actors --test memory --test stress
}

# Lints and tests of what the features add. All else is checked without them.
features() {
    local on='--test on_tokio --test on_tracing'
    # shellcheck disable=SC2086 # a word each
    cargo clippy --locked --lib $on --all-features -- -D warnings
    # shellcheck disable=SC2086 # a word each
    cargo test --locked --all-features $on
}

# The documentation of all packages with all features, and its examples. It has no warnings.
features_docs() {
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace --all-features
    cargo test --locked --all-features --doc
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

# The smaller tests on a machine with a weaker memory model, if this is one.
arm64() {
    if [ "$(uname -m)" != aarch64 ]; then
        echo "foreign hardware (arm64): this machine is $(uname -m)"
        return 77
    fi
    tests_release
}

# The library's own tests as code for 64-bit Arm, emulated. What is seen are its instructions and its
# layout: the emulator keeps to the stronger memory order of this processor.
arm64_emulated() {
    local target=aarch64-unknown-linux-gnu
    has_target "$target" || return 77
    if ! type qemu-aarch64 aarch64-linux-gnu-gcc; then
        echo 'qemu-user or the C compiler for 64-bit Arm is not installed'
        return 77
    fi
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    cargo test --locked --lib --target "$target" --target-dir target/elsewhere
}

# Runs every example to its end, as `cargo test` builds it. Those with arguments have their own
# function.
examples() {
    local path name
    cargo build --locked --profile test --examples
    for path in examples/*.rs examples/*/main.rs; do
        [ -e "$path" ] || continue
        name=${path#examples/} name=${name%.rs} name=${name%/main}
        echo "== $name"
        if declare -F "example_$name" >/dev/null; then
            "example_$name" "target/debug/examples/$name"
        else
            timeout 180 "target/debug/examples/$name"
        fi
    done
}

example_spool() {
    timeout 180 "$1" --svg target/spool.svg "$1"
}

# Copies the crate's lock file in two runs.
example_copy() {
    local scratch status=0
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$scratch'" EXIT
    timeout 180 "$1" --at-most=1000 Cargo.lock "$scratch/copy" || status=$?
    [ "$status" = 71 ]
    timeout 180 "$1" --debug-level=DEBUG Cargo.lock "$scratch/copy"
    cmp Cargo.lock "$scratch/copy"
}

example_supervise() {
    timeout 180 "$1" src
}

# Searches the crate's sources for a text that they contain and for one that they do not.
example_code_search() {
    local scratch status=0
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$scratch'" EXIT
    timeout 180 "$1" --index "$scratch/index" src 'pub struct Runtime' | tee "$scratch/hits"
    grep -q 'runtime/handle\.rs:[0-9]*: pub struct Runtime {$' "$scratch/hits"
    timeout 180 "$1" --index "$scratch/index" src 'no such words in these sources' || status=$?
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
    timeout 180 "$1" --size=30 "$scratch/in" "$scratch/out" || status=$?
    echo "status $status where a file is no image"
    [ "$status" = 1 ]
    grep -qx 'black.ppm 30 x 20' "$scratch/out/index.txt"
}

# Draws a run over the crate's sources, and checks that the picture is complete.
example_timeline() {
    timeout 180 "$1" src target/timeline.svg 2
    tail -n 1 target/timeline.svg | grep -qx '</svg>'
}
