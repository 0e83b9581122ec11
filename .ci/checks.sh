#!/usr/bin/env bash
# Runs a check of .ci/table.sh: `bash .ci/checks.sh NAME`. It is a function of .ci/checks/. The first
# sentence of its comment is what `cargo xtask help` says of it.
set -eu -o pipefail

readonly PEERS=benches/peers/Cargo.toml COMPARISON=benches/comparison/Cargo.toml
readonly SDL=examples/sdl/Cargo.toml WINIT=examples/winit/Cargo.toml
readonly OTEL=examples/otel/Cargo.toml
readonly TOKIO=tokio/Cargo.toml MISTAKES=tests/mistakes/Cargo.toml SPEED=benches/speed/Cargo.toml
# The tests of behaviour, a program for each subject.
readonly BEHAVIOUR='--test actors --test supervision --test services --test threads --test runtime
    --test simulation'
# What is outside of the workspace is compiled into one folder: most of its dependencies are the same.
readonly OUTSIDE=target/outside
# These builds are not measured, so they are compiled quickly.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_DEV_DEBUG=false

for part in .ci/checks/*.sh; do
    # shellcheck source=/dev/null
    source "$part"
done

"$@"
