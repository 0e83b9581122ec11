//! Many seeds: which ones run, which ones run twice, and how a failing run is shortened.

use std::hash::{BuildHasher, Hasher, RandomState};
#[cfg(target_os = "linux")]
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::{Address, Context, Reply, sim, spawn, time};

#[cfg(target_os = "linux")]
use crate::child::{command, is_for};
use crate::support::panic_of;

#[test]
fn every_eighth_run_and_the_last_are_repeated() {
    let mut seeds = Vec::new();
    sim::explore(10..21, |seed: u64| {
        seeds.push(seed);
        async {}
    });
    let mut wanted: Vec<u64> = (10..21).chain([17, 20]).collect();
    wanted.sort_unstable();
    assert_eq!(seeds, wanted);
}

#[test]
fn a_nondeterministic_program_is_reported_with_the_usual_cause() {
    let (text, ..) = panic_of(|| {
        sim::explore(0..100, |_| async {
            time::sleep(Duration::from_nanos(
                RandomState::new().build_hasher().finish() >> 30,
            ))
            .await;
        });
    });
    for part in ["seed 7: the program is not deterministic", "HashMap"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    // Also if the program fails only in some runs.
    let runs = AtomicU64::new(0);
    let (text, ..) = panic_of(|| {
        sim::explore(0..100, |_| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move { assert!(run != 3, "bomb") }
        });
    });
    for part in [
        "seed 3: main panicked: bomb\n",
        "the program is not deterministic",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn options_apply_to_each_seed_that_is_explored() {
    let gap = Duration::from_millis(5);
    let overtakes = |late| {
        let options = Simulated::new(0).timer_jitter(late);
        move || {
            options.explore(0..200, move |_| async move {
                let timer = spawn(time::sleep(Duration::from_millis(10)));
                time::sleep(Duration::from_millis(10) + gap).await;
                assert!(timer.is_finished(), "overtaken");
            });
        }
    };
    overtakes(Duration::from_millis(1))();
    let (text, ..) = panic_of(overtakes(2 * gap));
    assert!(text.contains("overtaken"), "{text}");
    assert!(
        text.contains(".timer_jitter(Duration::from_nanos(10000000)).try_run(..)"),
        "{text}"
    );
}

/// Receives messages and ignores them, so that there is other work.
async fn idle(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

#[test]
fn a_failing_run_is_shortened_and_both_lengths_are_reported() {
    let (text, ..) = panic_of(|| {
        sim::explore(0..1000, |_| async {
            let idlers: Vec<_> = (0..5).map(|_| spawn!(idle(_))).collect();
            let noise = idlers.iter().map(|idler| {
                let idler = idler.address();
                spawn(async move {
                    for number in 0..10 {
                        idler.tell(number).unwrap();
                        greenroom::yield_now().await;
                    }
                })
            });
            let noise: Vec<_> = noise.collect();
            let flag = std::sync::Arc::new(AtomicU64::new(0));
            let setter = {
                let flag = flag.clone();
                spawn(async move {
                    greenroom::yield_now().await;
                    flag.store(1, Ordering::Relaxed);
                })
            };
            greenroom::yield_now().await;
            greenroom::yield_now().await;
            let seen = flag.load(Ordering::Relaxed);
            setter.await;
            for task in noise {
                task.await;
            }
            assert!(seen == 1, "the flag is not set");
        });
    });
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("shortened: "));
    let words = line.unwrap().split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let [switches, steps, before, steps_before] = numbers[..] else {
        panic!("{text}")
    };
    assert!(
        switches * 2 < before && steps <= steps_before,
        "{switches} of {before}, {steps} of {steps_before}"
    );
    assert!(text.contains("seed "), "{text}");
}

/// Replies before it notifies the actor `done`.
async fn answers_first(mut cx: Context<Reply<()>>, done: Address<Option<Reply<bool>>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
        done.tell(None).unwrap();
    }
}

async fn done(mut cx: Context<Option<Reply<bool>>>) {
    let mut is_done = false;
    while let Some(message) = cx.recv().await {
        match message {
            Some(reply) => reply.send(is_done),
            None => is_done = true,
        }
    }
}

#[test]
fn a_shortened_run_draws_the_same_numbers_as_the_whole_run() {
    async fn program() {
        let done = spawn!(done(_));
        let answers = spawn!(answers_first(_, done.address()));
        answers.ask(|reply| reply).await.unwrap();
        let drawn = sim::random();
        let is_done = done.ask(Some).await.unwrap();
        assert!(is_done, "drawn: {drawn}");
    }
    let (text, ..) = panic_of(|| sim::explore(0..1000, |_| program()));
    let seed = text
        .strip_prefix("seed ")
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    let whole = Simulated::new(seed.parse().unwrap()).try_run(program());
    let whole = whole.unwrap_err().to_string();
    let drawn = |text: &str| {
        text.lines()
            .find_map(|line| Some(line.split_once("drawn: ")?.1.to_owned()))
    };
    assert_eq!(drawn(&text).unwrap(), drawn(&whole).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_variable_replays_one_seed() {
    const TEST: &str = "simulation::exploring::an_environment_variable_replays_one_seed";
    if is_for(TEST) {
        let mut seeds = Vec::new();
        sim::explore(0..5, |seed: u64| {
            seeds.push(seed);
            async {}
        });
        println!("seeds {seeds:?}");
        return;
    }
    let with = |value: &str| {
        let mut child = command(TEST);
        child
            .env("GREENROOM_SEED", value)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text + &String::from_utf8_lossy(&output.stderr)
    };
    assert!(with("77").contains("seeds [77, 77]"));
    let refused = with("seven");
    assert!(
        refused.contains("GREENROOM_SEED is \"seven\", but must be a number from 0 to"),
        "{refused}"
    );
}
