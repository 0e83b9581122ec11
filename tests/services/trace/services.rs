//! The lines of machines and spools.

use greenroom::machine::{Machine, Next};
use greenroom::spool::Spool;
use greenroom::supervise::Restarts;
use greenroom::{Context, RefusalKind, Reply, spawn};

use super::{about, lines_of};

struct Door {
    saved_capacity: usize,
}

enum State {
    Shut,
    Open,
}

enum Push {
    Open,
    Knock(Reply<()>),
    Kick,
}

fn name(push: &Push) -> &'static str {
    match push {
        Push::Open => "Open",
        Push::Knock(_) => "Knock",
        Push::Kick => "Kick",
    }
}

impl Machine for Door {
    type State = State;
    type Message = Push;
    type Value = ();

    async fn on(&mut self, state: &State, push: Push, _cx: &mut Context<Push>) -> Next<Self> {
        match (state, push) {
            (State::Shut, Push::Open) => Next::To(State::Open),
            (State::Shut, knock @ Push::Knock(_)) => Next::Save(knock),
            (State::Open, Push::Knock(reply)) => {
                reply.send(());
                Next::Stay
            }
            (_, ignored) => Next::Ignore(ignored),
        }
    }

    fn saved_capacity(&self) -> usize {
        self.saved_capacity
    }

    fn state_name(state: &State) -> &'static str {
        match state {
            State::Shut => "SHUT",
            State::Open => "OPEN",
        }
    }
}

#[test]
fn a_machine_shows_its_states_and_what_it_ignores() {
    let lines = lines_of(async {
        let door = Door { saved_capacity: 8 }.into_builder(State::Shut);
        let door = door.name("door").label(name).spawn();
        door.tell(Push::Kick).unwrap();
        let (knock, ()) = futures::join!(door.ask(Push::Knock), async {
            door.tell(Push::Open).unwrap();
        });
        assert_eq!(knock, Ok(()));
        door.join().await.unwrap();
    });
    let expected = [
        "+ <1>door - Created by <0>",
        "< <1>door[SHUT] - Received Kick from <0>",
        "< <1>door[SHUT] - Dropped Kick from <0>",
        "< <1>door[SHUT] - Received Knock from <0>",
        "< <1>door[SHUT] - Received Open from <0>",
        "> <1>door[OPEN] - Returned Ended<Door>",
        "X <1>door[OPEN] - Destroyed",
    ];
    assert_eq!(about(&lines, "door"), expected);
}

#[test]
fn a_message_that_a_machine_cannot_save_is_dropped_and_refused() {
    let lines = lines_of(async {
        let door = Door { saved_capacity: 0 }
            .into_builder(State::Shut)
            .name("door")
            .label(name)
            .spawn();
        let Err(greenroom::AskError::Refused(refusal)) = door.ask(Push::Knock).await else {
            panic!("it saves nothing");
        };
        assert_eq!(refusal.kind(), RefusalKind::Overloaded);
        door.join().await.unwrap();
    });
    let dropped = "< <1>door[SHUT] - Dropped Knock from <0>".to_owned();
    assert!(lines.contains(&dropped), "{lines:?}");
}

/// A machine without names for its states, but for one.
#[derive(Clone)]
struct Lamp;

#[derive(Clone)]
enum Light {
    Off,
    Broken,
}

enum Touch {
    Break,
    Mend,
    Switch,
    Smash,
}

impl Machine for Lamp {
    type State = Light;
    type Message = Touch;
    type Value = ();

    async fn on(&mut self, light: &Light, touch: Touch, _cx: &mut Context<Touch>) -> Next<Self> {
        match (light, touch) {
            (_, Touch::Smash) => std::panic::resume_unwind(Box::new("smashed")),
            (Light::Off, Touch::Break) => Next::To(Light::Broken),
            (Light::Broken, Touch::Mend) => Next::To(Light::Off),
            (Light::Broken, switch @ Touch::Switch) => Next::Save(switch),
            (_, ignored) => Next::Ignore(ignored),
        }
    }

    fn state_name(light: &Light) -> &'static str {
        match light {
            Light::Off => "",
            Light::Broken => "BROKEN",
        }
    }
}

#[test]
fn a_state_without_a_name_shows_none_and_saved_messages_keep_their_sender() {
    let lines = lines_of(async {
        let lamp = Lamp
            .into_builder(Light::Off)
            .restart(Restarts::on_fault())
            .spawn();
        let to = lamp.address();
        let client = spawn!(
            async move |_cx: Context<()>| {
                for touch in [Touch::Break, Touch::Switch, Touch::Smash] {
                    to.tell(touch).unwrap();
                }
            },
            name = "client"
        );
        client.join().await.unwrap();
        lamp.tell(Touch::Mend).unwrap();
        lamp.join().await.unwrap();
    });
    let lines = about(&lines, "Lamp");
    let received: Vec<_> = lines
        .iter()
        .filter(|line| !line.contains("Restarted") && !line.contains("Returned"))
        .collect();
    let expected = [
        "+ <1>Lamp - Created by <0>",
        "< <1>Lamp - Received Touch from <2>",
        "< <1>Lamp[BROKEN] - Received Touch from <2>",
        "< <1>Lamp[BROKEN] - Received Touch from <2>",
        // The saved one, after the restart.
        "< <1>Lamp - Received Touch from <2>",
        "< <1>Lamp - Dropped Touch from <2>",
        "< <1>Lamp - Received Touch from <0>",
        "< <1>Lamp - Dropped Touch from <0>",
        "X <1>Lamp - Destroyed",
    ];
    assert_eq!(received, expected);
}

async fn worker(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((number, reply)) = cx.recv().await {
        reply.send(number);
    }
}

#[test]
fn a_spool_without_a_name_is_called_as_in_layer_cake() {
    let lines = lines_of(async {
        let spool = Spool::builder(|_| spawn!(worker(_))).workers(1).spawn();
        drop(spool.unwrap());
    });
    assert!(!about(&lines, "ObjectSpool").is_empty(), "{lines:?}");
}

struct Xy(u32);

async fn square(mut cx: Context<(Xy, Reply<u32>)>) {
    while let Some((Xy(side), reply)) = cx.recv().await {
        reply.send(side * side);
    }
}

#[test]
fn a_spool_shows_its_state_and_the_requests_that_it_receives() {
    let lines = lines_of(async {
        let spool = Spool::builder(|_| spawn!(square(_), name = "worker", label = |_| "Xy"));
        let spool = spool.workers(1).spawn().unwrap();
        let address = spool.address();
        let client = spawn!(
            async move |_cx: Context<()>| {
                let mapped = address.map(|(side, reply)| (Xy(side), reply));
                assert_eq!(mapped.ask(|reply| (3, reply)).await, Ok(9));
            },
            name = "client"
        );
        client.join().await.unwrap();
        assert_eq!(spool.ask(Xy(4)).await, Ok(16));
        spool.stop();
        // A spool that stops receives nothing.
        spool.ask(Xy(5)).await.unwrap_err();
        spool.join().await.unwrap_err();
    });
    let expected = [
        "+ <2>ObjectSpool - Created by <0>",
        "< <2>ObjectSpool[SPOOLING] - Received Xy from <3>",
        "< <2>ObjectSpool[SPOOLING] - Received Xy from <0>",
        "> <2>ObjectSpool[CLEARING] - Returned ()",
        "X <2>ObjectSpool[CLEARING] - Destroyed",
    ];
    assert_eq!(about(&lines, "ObjectSpool"), expected);
    let from = lines.iter().filter(|line| line.contains("to <2>"));
    assert_eq!(
        from.collect::<Vec<_>>(),
        ["> <3>client - Sent Xy to <2>", "> <0> - Sent Xy to <2>"]
    );
}

#[test]
fn a_spool_that_is_a_worker_receives_what_the_outer_one_forwards() {
    let lines = lines_of(async {
        let inner = Spool::builder(|_| spawn!(square(_))).workers(1);
        let inner = inner.name("inner").spawn().unwrap();
        let outer = Spool::external().name("outer").spawn().unwrap();
        outer.join_worker(inner.address());
        let client = spawn!(
            async move |_cx: Context<()>| assert_eq!(outer.ask(Xy(3)).await, Ok(9)),
            name = "client"
        );
        client.join().await.unwrap();
    });
    let forwarded = "> <4>client - Forward Xy to <2> (from <4>)".to_owned();
    assert!(lines.contains(&forwarded), "{lines:?}");
    let received = "< <2>inner[SPOOLING] - Received Xy from <4>".to_owned();
    assert!(about(&lines, "inner").contains(&received), "{lines:?}");
}

#[test]
fn a_spool_forwards_requests_to_its_workers_in_turn() {
    let lines = lines_of(async {
        let spool = Spool::builder(|number| {
            spawn!(
                worker(_),
                name = format!("worker {number}"),
                label = |_| "Xy"
            )
        });
        let spool = spool.workers(2).name("spool").spawn().unwrap();
        let client = spawn!(
            async move |_cx: Context<()>| {
                for number in 0..3 {
                    assert_eq!(spool.ask(number).await, Ok(number));
                }
            },
            name = "client"
        );
        client.join().await.unwrap();
    });
    let forwarded: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("Forward"))
        .collect();
    let expected =
        [1, 2, 1].map(|worker| format!("> <4>client - Forward Xy to <{worker}> (from <4>)"));
    assert_eq!(forwarded, expected.iter().collect::<Vec<_>>());
    let received = about(&lines, "worker 1");
    assert_eq!(received[1], "< <2>worker 1 - Received Xy from <4>");
}
