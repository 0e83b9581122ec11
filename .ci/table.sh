# shellcheck shell=bash
# The checks, and what each needs. This file is read by .ci/run, .ci/install and `cargo xtask help`.
#
# Each check is a function of .ci/checks/. It passes if it gives 0 within its seconds.
#
# "beside": may run beside one other check. "alone": has the machine to itself, since it looks at
# the clock or keeps every core busy.
#
# Two long ones that do not wait for the same build begin first, and the short ones that wait for
# `build` after them.
#
# "each": a part of each run. "gate": only of runs without `--all`, which has a check that contains
# it. "all": only of `--all`, since it is slow and seldom finds what the others do not. "named": only if
# it is named, since it takes hours.
#
# "77": what it means that a check gives 77, for "can't be done here". "failed" is the rule. "skipped"
# is counted as such, and never as passed.
#
# "needs": tools, which .ci/install names, targets of Rust, and folders of packages. The crates of these
# are fetched, and a C compiler links them. "." is the workspace.
#
# name               seconds  runs    in    77       needs
readonly TABLE='
  format                  60  beside  each  failed   rustfmt
  build                 1500  beside  each  failed   .
  loom                   900  beside  gate  failed   .
  loom_all              3600  beside  all   failed   .
  loom_deep            18000  beside  named failed   .
  asan                  1500  beside  gate  failed   .
  asan_all              3600  beside  all   failed   .
  mistakes               300  beside  each  skipped  tests/mistakes
  workflows              120  beside  each  skipped  linter
  xtask                  120  beside  each  failed   clippy .
  clippy                 300  beside  each  failed   clippy . benches/speed
  docs                   300  beside  each  failed   .
  features               900  beside  each  failed   clippy .
  crates                  60  beside  each  failed   .
  package                 60  beside  each  failed   .
  instructions           900  beside  each  failed   valgrind benches/speed
  ways                   300  beside  each  failed   valgrind benches/speed
  speed_build            900  beside  each  skipped  benches/speed
  deny                   300  beside  each  skipped  .
  semver                 600  beside  each  skipped  .
  miri                   900  beside  each  skipped  .
  clippy_http            300  beside  each  failed   clippy .
  http                   600  beside  each  failed   .
  clippy_cluster         600  beside  each  failed   clippy .
  cluster                900  beside  each  failed   .
  nats                   600  beside  each  skipped  nats .
  clippy_console         300  beside  each  failed   clippy .
  console                600  beside  each  failed   .
  clippy_durable         300  beside  each  failed   clippy .
  durable                600  beside  each  failed   .
  unpacked              3600  beside  all   failed   .
  face                   600  beside  all   skipped  . xtask/face
  minimal                900  beside  all   failed   .
  rust_version           900  beside  all   skipped  oldest .
  target_windows         900  beside  all   skipped  clippy target:x86_64-pc-windows-gnu .
  target_macos           900  beside  all   skipped  clippy target:aarch64-apple-darwin .
  target_arm64           900  beside  all   skipped  clippy target:aarch64-unknown-linux-gnu .
  target_32_bit          900  beside  all   skipped  clippy target:i686-unknown-linux-gnu .
  target_wasm32          300  beside  all   skipped  target:wasm32-unknown-unknown .
  arm64_emulated        1800  beside  all   skipped  target:aarch64-unknown-linux-gnu emulator .
  features_docs          600  beside  all   failed   .
  clippy_loom            300  beside  all   failed   clippy .
  clippy_tokio           600  beside  all   failed   clippy tokio
  tokio                  900  beside  all   failed   tokio
  clippy_peers           600  beside  all   failed   clippy benches/peers
  clippy_comparison      600  beside  all   failed   clippy benches/comparison
  clippy_sdl             600  beside  all   failed   clippy sdl examples/sdl
  http_all               900  beside  all   failed   .
  http_browser           600  beside  all   skipped  chromium .
  layer_cake             600  beside  all   skipped  layer_cake .
  http_bench             600  beside  all   failed   clippy http/bench
  http_fuzz             1800  beside  all   failed   http/fuzz
  cluster_all           3000  beside  all   skipped  .
  nats_all              1800  beside  all   skipped  nats .
  cluster_bench         3600  beside  all   failed   clippy cluster/bench
  cluster_fuzz          1200  beside  all   failed   cluster/fuzz
  durable_all           3600  beside  all   failed   valgrind . durable/bench
  durable_bench         1800  beside  all   failed   clippy durable/bench durable/bench/apalis
  clippy_winit           600  beside  all   failed   clippy examples/winit
  otel                   900  beside  all   failed   clippy examples/otel
  peers                  900  beside  all   failed   benches/peers
  comparison             900  beside  all   failed   benches/comparison
  soak_build             900  beside  all   failed   clippy .
  ub_checks             1800  beside  all   failed   .
  asan_kept             3600  beside  all   failed   .
  tsan                  3600  beside  all   failed   .
  tests                 1500  alone   each  failed   .
  tests_release          600  alone   each  failed   .
  examples               300  alone   each  failed   .
  speed                  900  alone   each  skipped  benches/speed
  arm64                  900  alone   each  skipped  .
  http_speed            1800  alone   all   failed   http/bench
  sdl                    300  alone   all   failed   sdl screen examples/sdl
  winit                  600  alone   all   failed   winit screen examples/winit
  litmus                1800  alone   all   failed   .
  soak                  1800  alone   all   failed   nats .
'

# Prints the rows of these checks, in the order of the table. Without names they are those of each
# run, and with `--all` all but those that another one contains.
rows() {
    local name IFS='|'
    case $* in
        '') grep -E ' (each|gate) ' <<<"$TABLE" ;;
        --all) grep -E ' (each|all) ' <<<"$TABLE" ;;
        *)
            for name; do
                [[ $TABLE == *$'\n'"  $name "* ]] && continue
                echo "no such check: $name (\`cargo xtask help\` lists them)" >&2
                return 2
            done
            grep -E "^  ($*) " <<<"$TABLE"
            ;;
    esac
}
