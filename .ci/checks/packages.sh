# shellcheck shell=bash
# The packages beside the root.

# Lints and documentation of greenroom-http.
clippy_http() {
    cargo clippy --locked --all-targets -p greenroom-http -- -D warnings
    cargo clippy --locked -p greenroom-http --features tracing --test traces -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps -p greenroom-http
}

# Tests of greenroom-http, over real sockets.
http() {
    cargo test --locked -p greenroom-http
    # Apart, since all else is checked without the feature.
    cargo test --locked -p greenroom-http --features tracing --test traces
}

# Crowds of bad clients of greenroom-http in full. They are 10 000 connections in turn, and 1000 at
# once.
http_all() {
    ulimit -n "$(ulimit -Hn)"
    cargo build --locked --profile test -p greenroom-http --examples
    GREENROOM_MATRIX=all cargo test --locked -p greenroom-http --test it crowds
}

# The page of actors of greenroom-http in Chromium.
http_browser() {
    if ! command -v chromium; then
        echo 'chromium is not installed'
        return 77
    fi
    GREENROOM_BROWSER=chromium cargo test --locked -p greenroom-http --test it browser
}

# The program of layer_cake asks greenroom-http, and is asked by it.
layer_cake() {
    local python=$PWD/target/layer_cake/bin/python
    if ! "$python" -c 'import layer_cake'; then
        echo 'the program of layer_cake is not installed'
        return 77
    fi
    GREENROOM_LAYER_CAKE=$python cargo test --locked -p greenroom-http --test it layer_cake
}

# Lints of http/bench, and a short round beside its peers. Its figures are reported, not checked.
# `http_speed` has the same build.
http_bench() {
    cargo clippy --locked --all-targets --manifest-path http/bench/Cargo.toml \
        --target-dir target/http_bench -- -D warnings
    http_compared run 1 500
}

# Compares greenroom-http with its peers, in turns.
http_speed() {
    http_compared speed
}

# Runs http/bench, compiled as a comparison has to be.
http_compared() {
    unset "${!CARGO_PROFILE_RELEASE_@}"
    cargo run --release --locked --manifest-path http/bench/Cargo.toml \
        --target-dir target/http_bench -- "$@"
}

# Lints and documentation of greenroom-cluster. With NATS alone it has at most 130 crates, and none of
# sockets.
clippy_cluster() {
    local crates
    cargo clippy --locked --all-targets --all-features -p greenroom-cluster -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --all-features -p greenroom-cluster
    crates=$(cargo tree --locked -e normal,build --prefix none --no-default-features --features nats \
        -p greenroom-cluster | sed 's/ (\*)$//' | sort -u)
    echo "$(wc -l <<<"$crates") crates, of at most 130"
    [ "$(wc -l <<<"$crates")" -le 130 ]
    ! grep -E '^(async-io|futures-rustls) ' <<<"$crates"
}

# Tests of greenroom-cluster, within and between processes.
cluster() {
    cargo test --locked --all-features -p greenroom-cluster
    cargo test --locked --no-default-features -p greenroom-cluster --lib without_an_engine
}

# Tests of greenroom-cluster with a real NATS server.
nats() {
    nats_server || return
    cargo clippy --locked --no-default-features --features nats -p greenroom-cluster -- -D warnings
    cargo test --locked --all-features -p greenroom-cluster --test nats
}

# All faults of NATS servers, and of nodes at them. Some need rights.
nats_all() {
    nats_server || return
    all_faults --test nats
}

# Finds the NATS server for tests.
nats_server() {
    export GREENROOM_NATS_SERVER=$PWD/target/nats/bin/nats-server
    if ! "$GREENROOM_NATS_SERVER" --version; then
        echo 'no NATS server is installed'
        return 77
    fi
}

# Runs these tests of greenroom-cluster with all faults of processes and nets. What the machine does
# not allow is skipped.
all_faults() {
    local output
    output=$(GREENROOM_FAULTS=all cargo test --locked --release --all-features -p greenroom-cluster \
        "$@" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    if grep -q '^SKIPPED' <<<"$output"; then return 77; fi
}

# Histories of greenroom-cluster from 10 000 seeds, and all faults. The faults are of processes and
# nets, and some need rights.
cluster_all() {
    GREENROOM_SEEDS=10000 cargo test --locked --release --all-features -p greenroom-cluster \
        --test it model
    all_faults --test processes
}

# Lints of cluster/bench, and a short round beside its peers. Its figures are reported, not checked: an
# optimized build of all peers takes minutes.
cluster_bench() {
    cargo clippy --locked --all-targets --manifest-path cluster/bench/Cargo.toml \
        --target-dir "$OUTSIDE" -- -D warnings
    cargo run --locked --manifest-path cluster/bench/Cargo.toml \
        --target-dir "$OUTSIDE" -- run 1 1000
}

# Lints and documentation of greenroom-console.
clippy_console() {
    cargo clippy --locked --all-targets -p greenroom-console -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --lib -p greenroom-console
}

# Tests of greenroom-console, on recorded lines and in a terminal.
console() {
    cargo test --locked -p greenroom-console
}

# Lints and documentation of greenroom-durable. It has at most 40 crates beside those of the core.
clippy_durable() {
    local core count
    cargo clippy --locked --all-targets --all-features -p greenroom-durable -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --all-features -p greenroom-durable
    core=$(cargo tree --locked -e normal,build --prefix none -p greenroom | sort -u | wc -l)
    count=$(cargo tree --locked -e normal,build --prefix none -p greenroom-durable | sort -u | wc -l)
    echo "$((count - core)) crates, of at most 40"
    [ "$((count - core))" -le 40 ]
}

# Tests of greenroom-durable, in simulations and with real files.
durable() {
    cargo test --locked --all-features -p greenroom-durable
}

# 10 000 histories of greenroom-durable, 1000 crashes, and all cuts of its files. Also what a job costs
# beside a million that wait.
durable_all() {
    GREENROOM_SEEDS=10000 cargo test --locked --release -p greenroom-durable --test it model
    GREENROOM_CRASHES=1000 cargo test --locked --release -p greenroom-durable --test it crashes
    GREENROOM_CUTS=all cargo test --locked --release -p greenroom-durable --lib cuts
    GREENROOM_WAITING=1000000 cargo test --locked --release -p greenroom-durable --lib costs
    if command -v valgrind; then
        CARGO_TARGET_DIR=$PWD/target/durable_bench durable/bench/waiting.sh
    else
        echo 'valgrind is not installed: no instructions are counted'
    fi
}

# Lints of durable/bench, and a short round of all sides. Its figures are reported, not checked.
durable_bench() {
    cargo clippy --locked --all-targets --workspace --manifest-path durable/bench/Cargo.toml \
        --target-dir "$OUTSIDE" -- -D warnings
    cargo clippy --locked --all-targets --manifest-path durable/bench/apalis/Cargo.toml \
        --target-dir "$OUTSIDE/apalis" -- -D warnings
    cargo run --locked --manifest-path durable/bench/Cargo.toml --target-dir "$OUTSIDE" \
        -- run 1 1000
}

# Lints, tests and the build of soak.
soak_build() {
    cargo clippy --locked --all-targets -p soak -- -D warnings
    cargo test --locked -p soak
    cargo build --locked --release -p soak
}

# Three minutes of `soak`: all packages under faults, with even ledgers. Without a NATS server, the nodes
# at one are left out.
soak() {
    nats_server || true
    cargo run --locked --release -p soak -- run 3
}

# Fuzzers of what clients of greenroom-http send, for a while.
http_fuzz() {
    fuzz http -runs=200000 query envelope framing
}

# Fuzzers of what other nodes of greenroom-cluster send, for a minute each.
cluster_fuzz() {
    fuzz cluster -max_total_time=60 frames packets
}

# Builds the fuzzers of a package without cargo-fuzz, and lets each run as long as the option says. What
# they have found before is read by the package's own tests.
fuzz() {
    local host name package=$1 limit=$2
    shift 2
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
        "target/${package}_fuzz/$host/release/$name" "$limit" -timeout=20 \
            -artifact_prefix="target/${package}_fuzz/$name-" \
            "target/${package}_fuzz/$name" "$package/fuzz/corpus/$name"
    done
}

# Lints of tokio/.
clippy_tokio() {
    cargo clippy --locked --all-targets --manifest-path "$TOKIO" --target-dir "$OUTSIDE" \
        -- -D warnings
}

# Tests of tokio/, over real sockets and with a real database, and its example.
tokio() {
    cargo test --locked --manifest-path "$TOKIO" --target-dir "$OUTSIDE"
    timeout 180 cargo run --locked --manifest-path "$TOKIO" --target-dir "$OUTSIDE" \
        --example axum_state
}

# Lints of benches/peers.
clippy_peers() {
    cargo clippy --locked --all-targets --manifest-path "$PEERS" --target-dir "$OUTSIDE" \
        -- -D warnings
}

# A short case of each peer and some points of `scaling` print figures. The values do not matter: an
# optimized build of all peers would take minutes.
peers() {
    local peer case
    cargo build --locked --manifest-path "$PEERS" --target-dir "$OUTSIDE"
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
# then (benches/peers/README.md). So a peer that runs out of time has three tries, and then none.
figures() {
    local words="$*" program=$OUTSIDE/debug/$1 is_own='' status=124 tries=3 limit=40 figures=
    shift
    if [[ " $words " == *' greenroom '* ]]; then is_own=yes tries=1 limit=180; fi
    while [ "$status" = 124 ] && [ $((tries--)) != 0 ]; do
        status=0
        figures=$(timeout "$limit" "$program" "$@") || status=$?
    done
    echo "$words: ${figures:-status $status}"
    case $status in
        0) [ -n "$figures" ] ;;
        124) [ -z "$is_own" ] ;;
        *) return 1 ;;
    esac
}

# Lints of benches/comparison.
clippy_comparison() {
    cargo clippy --locked --all-targets --all-features --manifest-path "$COMPARISON" \
        --target-dir "$OUTSIDE" -- -D warnings
}

# Runs the programs of docs/comparison.md, and compares the page with them.
comparison() {
    CARGO_TARGET_DIR=$PWD/$OUTSIDE benches/comparison/run --check
}

# Lints of examples/sdl, and its build.
clippy_sdl() {
    cargo clippy --locked --all-targets --manifest-path "$SDL" --target-dir target/sdl \
        -- -D warnings
    cargo test --no-run --locked --release --manifest-path "$SDL" --target-dir target/sdl
}

# The example with a window of SDL, on its own screens. The figures of `--bench` are only printed:
# the machine may be any, and it may be busy.
sdl() {
    cargo test --locked --release --manifest-path "$SDL" --target-dir target/sdl
    timeout --kill-after=10 180 xvfb-run -a -s '-screen 0 1280x1024x24' \
        target/sdl/release/life --bench
}

# Lints of examples/otel, and the tree that it prints.
otel() {
    cargo clippy --locked --all-targets --manifest-path "$OTEL" --target-dir "$OUTSIDE" -- -D warnings
    cargo test --locked --manifest-path "$OTEL" --target-dir "$OUTSIDE"
}

# Lints of examples/winit, and its build.
clippy_winit() {
    cargo clippy --locked --all-targets --manifest-path "$WINIT" --target-dir target/winit \
        -- -D warnings
    cargo test --no-run --locked --release --manifest-path "$WINIT" --target-dir target/winit
}

# The example with a loop of winit, on its own screens.
winit() {
    cargo test --locked --release --manifest-path "$WINIT" --target-dir target/winit
    timeout --kill-after=10 180 xvfb-run -a -s '-screen 0 1280x1024x24' target/winit/release/lamp
}
