//! What an observer is told of restarts.

use greenroom::policy::TaskInfo;
use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, Observer, Runtime, actor};

use super::{HOUR, Order, obedient};
use crate::support::{Log, keep_bombs_quiet};

/// Writes what it is told of restarts and ends.
#[derive(Clone, Default)]
struct Watches(Log<String>);

impl Observer for Watches {
    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        let fault = fault.map_or("returned".to_owned(), Fault::to_string);
        let name = actor.name().unwrap_or("an actor");
        self.0.add(format!("{name} {incarnation}: {fault}"));
    }

    fn completed(&self, task: &TaskInfo) {
        if let Some(name) = task.name() {
            self.0.add(format!("{name} has ended"));
        }
    }
}

std::thread_local! {
    static WATCHES: Watches = Watches::default();
}

fn observed() -> greenroom::Builder {
    let watches = WATCHES.with(Watches::clone);
    Runtime::builder().on_fault(|_| {}).observer(watches)
}

mod each_restart_is_told_with_its_number_and_its_cause {
    #[test]
    fn in_its_homes() {
        use crate::support::Homes;
        let homes = Homes::built(super::observed).without_simulations();
        homes.watch(module_path!(), super::each_restart_is_told);
    }
}

mod the_number_of_a_restart_is_that_of_the_incarnation {
    #[test]
    fn in_its_homes() {
        use crate::support::Homes;
        let homes = Homes::built(super::observed).without_simulations();
        homes.watch(module_path!(), super::the_numbers_are_the_same);
    }
}

fn each_restart_is_told(home: &crate::support::Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let rules = Restarts::always().intensity(3, HOUR);
        let obeys = home.spawn(obeys.name("obeys").restart(rules));
        for order in [
            Order::Panic("bomb 1"),
            Order::Return,
            Order::Panic("bomb 2"),
        ] {
            obeys.tell(order).unwrap();
        }
        obeys.tell(Order::Log(1)).unwrap();
        obeys.tell(Order::Panic("bomb 3")).unwrap();
        obeys.closed().await;
        assert_eq!(log.take(), [1]);
        let told = [
            "obeys 1: panicked: bomb 1",
            "obeys 2: returned",
            "obeys 3: panicked: bomb 2",
            "obeys has ended",
        ];
        assert_eq!(WATCHES.with(|watches| watches.0.take()), told);
    });
}

fn the_numbers_are_the_same(home: &crate::support::Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let numbers = Log::default();
        let own = numbers.clone();
        let lends = actor(move |mut cx: Context<()>| async move {
            own.add(cx.incarnation_number());
            // Those within are counted, too.
            for _ in 0..2 {
                cx.incarnation(|_cx| async {}).await.unwrap();
            }
            panic!("bomb");
        });
        let rules = Restarts::<()>::on_fault().intensity(2, HOUR);
        let lends = home.spawn(lends.name("lends").restart(rules));
        lends.closed().await;
        assert_eq!(numbers.take(), [0, 3, 6]);
        let told = [
            "lends 3: panicked: bomb",
            "lends 6: panicked: bomb",
            "lends has ended",
        ];
        assert_eq!(WATCHES.with(|watches| watches.0.take()), told);
    });
}
