//! Which results lead to a restart, and how often.

use std::time::Duration;

use greenroom::supervise::{Restartable, Restarts};
use greenroom::{Actor, Context, Fault, SpawnProblem, actor, spawn};

use super::{HOUR, Order, ever, obedient, text_of};
use crate::support::{Home, Log, in_every_home, keep_bombs_quiet, panic_of};

in_every_home!(
    on_fault_restarts_after_a_panic_and_not_after_a_return,
    always_restarts_after_a_return_too,
    a_function_decides_by_the_value_or_the_panic,
    an_actor_ends_with_its_last_result_when_its_intensity_is_used_up,
    a_return_counts_against_the_intensity_like_a_panic,
    an_intensity_of_0_restarts_never,
    each_actor_has_an_intensity_of_its_own,
    a_restartable_actor_can_be_restarted_by_other_rules,
    the_default_is_five_restarts_within_five_seconds,
);

fn on_fault_restarts_after_a_panic_and_not_after_a_return(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let obeys = home.spawn(obeys.restart(Restarts::on_fault()));
        for order in [Order::Panic("bomb"), Order::Log(1), Order::Return] {
            obeys.tell(order).unwrap();
        }
        let _ = obeys.tell(Order::Log(2));
        assert_eq!(obeys.join().await.unwrap(), 1);
        assert_eq!(log.take(), [1]);
    });
}

fn always_restarts_after_a_return_too(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let obeys = home.spawn(obeys.restart(Restarts::always()));
        for number in 1..=2 {
            obeys.tell(Order::Return).unwrap();
            obeys.tell(Order::Log(number)).unwrap();
            obeys.tell(Order::Panic("bomb")).unwrap();
        }
        assert_eq!(obeys.ask(Order::Number).await, Ok(4));
        // It gives up its last address, and the last incarnation finds that.
        assert_eq!(obeys.join().await.unwrap(), 4);
        assert_eq!(log.take(), [1, 2]);
    });
}

fn a_function_decides_by_the_value_or_the_panic(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let seen = Log::default();
        let own = seen.clone();
        let rule = move |result: &Result<u64, Fault>| {
            own.add(match result {
                Ok(number) => format!("returned in {number}"),
                Err(fault) => fault.to_string(),
            });
            !matches!(result, Err(Fault::Panicked(panic)) if panic.text() == Some("bomb, the last"))
        };
        let (obeys, _) = obedient();
        let obeys = home.spawn(obeys.restart(Restarts::when(rule)));
        obeys.tell(Order::Panic("bomb")).unwrap();
        obeys.tell(Order::Return).unwrap();
        obeys.tell(Order::Panic("bomb, the last")).unwrap();
        let _ = obeys.tell(Order::Panic("bomb"));
        assert_eq!(text_of(obeys.join().await), "bomb, the last");
        let told = [
            "panicked: bomb",
            "returned in 1",
            "panicked: bomb, the last",
        ];
        assert_eq!(seen.take(), told);
    });
}

fn an_actor_ends_with_its_last_result_when_its_intensity_is_used_up(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let numbers = || actor(|cx: Context<()>| async move { cx.incarnation_number() });
        for restarts in [1, 2, 7] {
            let rules = Restarts::always().intensity(restarts, HOUR);
            let returns = home.spawn(numbers().restart(rules));
            returns.closed().await;
            assert_eq!(returns.join().await.unwrap(), u64::from(restarts));

            let panics = actor(|cx: Context<()>| async move {
                panic!("bomb {}", cx.incarnation_number());
            });
            let rules = Restarts::<()>::on_fault().intensity(restarts, HOUR);
            let panics = home.spawn(panics.restart(rules));
            panics.closed().await;
            assert_eq!(text_of(panics.join().await), format!("bomb {restarts}"));
        }
    });
}

fn a_return_counts_against_the_intensity_like_a_panic(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let obeys = home.spawn(obeys.restart(Restarts::always().intensity(3, HOUR)));
        for order in [Order::Return, Order::Panic("bomb"), Order::Return] {
            obeys.tell(order).unwrap();
        }
        obeys.tell(Order::Log(1)).unwrap();
        obeys.tell(Order::Return).unwrap();
        let _ = obeys.tell(Order::Log(2));
        obeys.closed().await;
        assert_eq!(obeys.join().await.unwrap(), 3);
        assert_eq!(log.take(), [1]);
    });
}

fn an_intensity_of_0_restarts_never(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for rules in [Restarts::on_fault(), Restarts::when(|_| true)] {
            let (obeys, log) = obedient();
            let obeys = home.spawn(obeys.restart(rules.intensity(0, HOUR)));
            obeys.tell(Order::Panic("bomb")).unwrap();
            let _ = obeys.tell(Order::Log(1));
            assert_eq!(text_of(obeys.join().await), "bomb");
            assert_eq!(log.take(), []);
        }
    });
}

fn each_actor_has_an_intensity_of_its_own(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let rules = Restarts::on_fault().intensity(2, HOUR);
        for _ in 0..3 {
            let (obeys, _) = obedient();
            let obeys = home.spawn(obeys.restart(rules.clone()));
            obeys.tell(Order::Panic("bomb")).unwrap();
            obeys.tell(Order::Panic("bomb")).unwrap();
            assert_eq!(obeys.ask(Order::Number).await, Ok(2));
            obeys.join().await.unwrap();
        }
    });
}

fn a_restartable_actor_can_be_restarted_by_other_rules(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let inner = Restarts::on_fault().intensity(1, HOUR);
        let outer = Restarts::on_fault().intensity(2, HOUR);
        let held = home.hold();
        let obeys = home.spawn(obeys.restart(inner).restart(outer));
        for number in 1..=6 {
            obeys.tell(Order::Log(number)).unwrap();
            obeys.tell(Order::Panic("bomb")).unwrap();
        }
        obeys.tell(Order::Log(7)).unwrap();
        drop(held);
        // Each of the three outer incarnations has two inner ones.
        assert_eq!(text_of(obeys.join().await), "bomb");
        assert_eq!(log.take(), [1, 2, 3, 4, 5, 6]);
    });
}

fn the_default_is_five_restarts_within_five_seconds(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let panics = actor(|cx: Context<()>| async move {
            own.add(cx.incarnation_number());
            panic!("bomb");
        });
        let panics = home.spawn(panics.restart(Restarts::<()>::default()));
        panics.closed().await;
        assert_eq!(text_of(panics.join().await), "bomb");
        assert_eq!(log.take(), [0, 1, 2, 3, 4, 5]);
    });
}

/// A value that an error gives back.
#[derive(Clone, Debug, PartialEq)]
struct Value(u32);

impl greenroom::Actor for Value {
    type Message = u32;

    async fn handle(&mut self, number: u32, _cx: &mut Context<u32>) {
        self.0 += number;
    }
}

#[test]
fn impossible_numbers_are_refused_with_the_value() {
    greenroom::run(async {
        let cases = [
            (
                Restarts::on_fault().intensity(3, Duration::ZERO),
                SpawnProblem::ZeroWindow,
                "the window of the intensity is 0 s, but must be longer",
            ),
            (
                Restarts::always().intensity(0, HOUR),
                SpawnProblem::ZeroIntensity,
                "the intensity is 0 restarts, but must be at least 1 for `Restarts::always`",
            ),
            (
                Restarts::always().intensity(0, Duration::ZERO),
                SpawnProblem::ZeroWindow,
                "the window of the intensity is 0 s, but must be longer",
            ),
        ];
        for (rules, problem, text) in cases {
            let refused = Value(7).into_builder().restart(rules.clone()).try_spawn();
            let refused = refused.unwrap_err();
            assert_eq!(refused.problem(), problem);
            assert!(refused.to_string().contains(text), "{refused}");
            assert_eq!(refused.into_inner().into_inner(), Value(7));

            // An inner rule is checked like an outer one.
            let inner = Value(7).into_builder().restart(rules.clone());
            let refused = inner.restart(Restarts::on_fault()).try_spawn().unwrap_err();
            assert_eq!(refused.problem(), problem);
            let inner: Restartable<_, _, _> = refused.into_inner().into_inner();
            assert_eq!(inner.into_inner(), Value(7));

            let (told, ..) = panic_of(|| Value(7).into_builder().restart(rules.clone()).spawn());
            assert!(told.contains(text), "{told}");
            let (told, ..) = panic_of(|| drop(Value(7).into_builder().restart(rules).split()));
            assert!(told.contains(text), "{told}");
        }
    });
}

#[test]
fn an_actor_without_a_runtime_is_given_back() {
    let refused = Value(7)
        .into_builder()
        .restart(Restarts::default())
        .try_spawn();
    let refused = refused.unwrap_err();
    assert_eq!(refused.problem(), SpawnProblem::NoRuntime);
    assert_eq!(refused.into_inner().into_inner(), Value(7));
}

#[test]
fn rules_show_what_they_are() {
    let rules = Restarts::<()>::when(|_| true).intensity(3, HOUR);
    let shown = format!("{rules:?}");
    for part in ["when", "restarts: 3", "3600s"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(format!("{:?}", Restarts::<()>::default()).contains("on_fault"));
    assert!(format!("{:?}", Restarts::<()>::always()).contains("always"));
}

#[test]
fn the_macro_takes_the_rules_in_any_place_among_the_options() {
    async fn count(mut cx: Context<Option<u32>>, first: u32) -> u32 {
        let mut sum = first;
        while let Some(number) = cx.recv().await {
            sum += number.expect("bomb");
        }
        sum
    }
    keep_bombs_quiet();
    greenroom::run(async {
        let one = spawn!(count(_, 40), restart = ever(), name = "one", capacity = 3);
        assert_eq!((one.name(), one.capacity()), (Some("one"), Some(3)));
        let two = spawn!(
            count(_, 41),
            name = "two",
            restart = Restarts::always(),
            show
        );
        let three = spawn!(
            |cx: Context<Option<u32>>| count(cx, 42),
            restart = Restarts::when(|result: &Result<u32, Fault>| result.is_err())
        );
        for handle in [&one, &two, &three] {
            handle.tell(Some(100)).unwrap();
            handle.tell(None).unwrap();
            handle.tell(Some(2)).unwrap();
        }
        let sums = [one.join().await, two.join().await, three.join().await];
        assert_eq!(sums.map(Result::unwrap), [42, 43, 44]);
    });
}
