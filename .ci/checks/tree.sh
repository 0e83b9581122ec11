# shellcheck shell=bash
# What is checked without a run: form, lints, documents, dependencies and other systems.

# The code of each package is formatted, also outside the workspace.
format() {
    local manifests manifest
    manifests=$(git ls-files 'Cargo.toml' '*/Cargo.toml')
    while read -r manifest; do
        cargo fmt --check --manifest-path "$manifest" -- --color never \
            || { echo "$manifest is not formatted"; return 1; }
    done <<<"$manifests"
}

# Lints and tests of `cargo xtask`, whose help lists the checks.
xtask() {
    cargo clippy --locked --all-targets -p xtask -- -D warnings
    cargo test --locked -p xtask
}

# Lints of the root package and of benches/speed.
clippy() {
    cargo clippy --locked --all-targets -- -D warnings
    cargo clippy --locked --all-targets --manifest-path "$SPEED" --target-dir target/speed \
        -- -D warnings
}

# Lints of the library with its models. No other target has code for them.
clippy_loom() {
    RUSTFLAGS='--cfg greenroom_loom' \
        cargo clippy --locked --profile test --lib --target-dir target/loom -- -D warnings
}

# The documentation has no warnings, with private items.
docs() {
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items \
        --all-features
}

# The form of the workflows, which run elsewhere, and the names in them.
workflows() {
    local tools=target/linter/bin
    if ! "$tools/check-jsonschema" --version; then
        echo 'check-jsonschema, of PyPI, is not installed'
        return 77
    fi
    "$tools/yamllint" --strict -d '{extends: default, rules: {line-length: {max: 120}}}' .github
    "$tools/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
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

# A default build has at most 13 crates, greenroom included.
crates() {
    local count
    cargo tree --locked -e normal,build --prefix none | sort -u
    count=$(cargo tree --locked -e normal,build --prefix none | sort -u | wc -l)
    echo "$count crates, of at most 13"
    [ "$count" -le 13 ]
}

# The packages have the documents for users, and nothing for the project alone.
package() {
    local listed paper name
    for name in greenroom greenroom-http greenroom-cluster greenroom-durable greenroom-console; do
        listed=$(cargo package --locked --allow-dirty --list -p "$name")
        echo "$listed"
        for paper in README.md LICENSE-APACHE LICENSE-MIT src/lib.rs; do
            grep -qx "$paper" <<<"$listed" || { echo "not in $name: $paper"; return 1; }
        done
        if grep -E '^(bench|fuzz|target)/|^(clippy|rustfmt)\.toml$' <<<"$listed"; then
            echo "in $name, though it should not be"
            return 1
        fi
    done
    listed=$(cargo package --locked --allow-dirty --list)
    for paper in ARCHITECTURE.md CHANGELOG.md SECURITY.md; do
        grep -qx "$paper" <<<"$listed" || { echo "not in the package: $paper"; return 1; }
    done
    if grep -E '^(\.ci|\.github|benches/(comparison|peers|speed)|examples/(otel|sdl|winit)|cluster|console|durable|http|soak|tokio|tests/mistakes|xtask)/' <<<"$listed"; then
        echo 'in the package, though it should not be'
        return 1
    fi
}

# Each package passes its tests in a folder with nothing but the packages. RELEASING.md lists the tests
# that are left out.
unpacked() {
    local folder package version archive
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # expanded now
    trap "rm -rf '$folder'" EXIT
    version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
    rm -rf target/unpacked/package
    cargo package --quiet --workspace --exclude soak --exclude xtask --locked --allow-dirty --no-verify \
        --target-dir target/unpacked
    # With the time of now: a build of before was of another folder.
    for archive in target/unpacked/package/*.crate; do tar -xzmf "$archive" -C "$folder"; done
    mkdir "$folder/.cargo"
    {
        echo '[patch.crates-io]'
        for package in greenroom greenroom-http greenroom-cluster greenroom-durable; do
            echo "$package = { path = \"$folder/$package-$version\" }"
        done
    } >"$folder/.cargo/config.toml"
    for package in greenroom greenroom-http greenroom-cluster greenroom-durable greenroom-console; do
        (
            export CARGO_TARGET_DIR=$PWD/target/unpacked RUST_TEST_THREADS=4
            cd "$folder/$package-$version"
            cargo test --no-fail-fast --all-features -- --skip tidy:: --skip every_test_named_in --skip fuzzing::tests
        )
    done
}

# The public items of each package are those that xtask/face lists. Those of today are in target/face.
face() {
    local package name failed=0
    if ! rustc --version | grep -qF ' 1.95.'; then
        echo 'xtask/face reads what rustdoc 1.95 writes'
        return 77
    fi
    for package in greenroom greenroom-http greenroom-cluster greenroom-durable; do
        RUSTC_BOOTSTRAP=1 cargo rustdoc --quiet --locked --lib --all-features --package "$package" \
            --target-dir target/face -- -Zunstable-options --output-format json
        name=target/face/doc/${package//-/_}.json
        cargo run --quiet --release --locked --manifest-path xtask/face/Cargo.toml \
            --target-dir target/face -- "$name" >"target/face/$package.txt"
        diff -u "xtask/face/$package.txt" "target/face/$package.txt" || failed=1
    done
    return "$failed"
}

# The oldest dependencies that the packages allow compile them.
minimal() {
    local copy=target/minimal/copy
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z | tar -c --null -T - | tar -x -C "$copy"
    cd "$copy"
    RUSTC_BOOTSTRAP=1 cargo update --quiet -Zdirect-minimal-versions
    cargo check --locked --workspace --all-features --target-dir ../build
}

# The oldest Rust that Cargo.toml allows compiles the packages.
rust_version() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! cargo "+$oldest" --version; then
        echo "Rust $oldest is not installed, and rustup does not bring it"
        return 77
    fi
    cargo "+$oldest" check --locked --workspace --exclude xtask --all-features --all-targets \
        --target-dir target/oldest
}

# The packages compile for Windows.
target_windows() {
    compiles_for x86_64-pc-windows-gnu
}

# The packages compile for macOS.
target_macos() {
    compiles_for aarch64-apple-darwin
}

# The packages compile for 64-bit Arm.
target_arm64() {
    compiles_for aarch64-unknown-linux-gnu
}

# The packages compile for a processor of 32 bits.
target_32_bit() {
    compiles_for i686-unknown-linux-gnu
}

# A target without threads is refused by a compile error.
target_wasm32() {
    local status=0
    has_target wasm32-unknown-unknown || return 77
    cargo check --locked --lib --target wasm32-unknown-unknown 2>target/wasm32.log || status=$?
    cat target/wasm32.log
    [ "$status" != 0 ] && grep -q 'greenroom needs threads' target/wasm32.log
}

# Lints the packages for a target. The C code of SQLite and ring is not compiled: that would need a C
# compiler with headers for each target.
compiles_for() {
    has_target "$1" || return 77
    CC=true AR=true cargo clippy --locked --workspace --exclude soak --exclude xtask --all-features \
        --target "$1" --target-dir target/elsewhere -- -D warnings
}

has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] && return
    echo "the toolchain here has no target $1, and rustup does not bring it"
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
    cargo semver-checks --workspace --exclude greenroom-console --exclude soak --exclude xtask \
        --baseline-rev "$last"
}
