//! The lines of machines and spools.

use greenroom::machine::{Machine, Next, machine};
use greenroom::spool::Spool;
use greenroom::{Context, RefusalKind, Reply, spawn};

use super::{about, lines_of};

struct Door;

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
        let door = machine(Door, State::Shut).name("door").label(name).spawn();
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
        "< <1>door[SHUT] - Dropped Kick",
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
        let door = machine(Door, State::Shut)
            .saved(0)
            .name("door")
            .label(name)
            .spawn();
        let Err(greenroom::AskError::Refused(refusal)) = door.ask(Push::Knock).await else {
            panic!("it saves nothing");
        };
        assert_eq!(refusal.kind(), RefusalKind::Overloaded);
        door.join().await.unwrap();
    });
    let dropped = "< <1>door[SHUT] - Dropped Knock".to_owned();
    assert!(lines.contains(&dropped), "{lines:?}");
}

async fn worker(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((number, reply)) = cx.recv().await {
        reply.send(number);
    }
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
        let spool = spool.object_count(2).name("spool").spawn().unwrap();
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
