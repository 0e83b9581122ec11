//! The lines of actors and of messages between them.

use greenroom::trace::{Level, forwarding};
use greenroom::{Address, Context, Detached, Refusal, Reply, Runtime, actor, spawn};

use super::{about, lines_of, traced};

#[derive(Debug)]
struct Xy;

async fn client(_cx: Context<()>, server: Address<Xy>) {
    server.tell(Xy).unwrap();
}

async fn server(mut cx: Context<Xy>) -> u32 {
    while cx.recv().await.is_some() {}
    7
}

#[test]
fn an_actor_is_created_sends_receives_returns_and_is_destroyed() {
    let lines = lines_of(async {
        let server = spawn!(server(_));
        spawn!(client(_, server.address())).join().await.unwrap();
        server.stop();
        server.join().await.unwrap();
    });
    assert_eq!(
        about(&lines, "client"),
        [
            "+ <2>client - Created by <0>",
            "> <2>client - Sent Xy to <1>",
            "> <2>client - Returned ()",
            "X <2>client - Destroyed",
        ]
    );
    assert_eq!(
        about(&lines, "server"),
        [
            "+ <1>server - Created by <0>",
            "< <1>server - Received Xy from <2>",
            "> <1>server - Returned u32",
            "X <1>server - Destroyed",
        ]
    );
}

#[test]
fn the_creator_of_an_actor_is_the_actor_that_spawned_it() {
    let lines = lines_of(async {
        let parent = |_cx: Context<()>| async {
            let child = |_cx: Context<()>| async {};
            actor(child).name("child").spawn().join().await.unwrap();
        };
        actor(parent).name("parent").spawn().join().await.unwrap();
    });
    assert_eq!(about(&lines, "child")[0], "+ <2>child - Created by <1>");
}

#[test]
fn a_message_of_code_outside_actors_has_the_sender_0() {
    let lines = lines_of(async {
        let server = spawn!(server(_));
        server.tell(Xy).unwrap();
        let address = server.address();
        greenroom::spawn(async move { address.tell(Xy).unwrap() }).await;
        server.join().await.unwrap();
    });
    let called = "a_message_of_code_outside_actors_has_the_sender_0";
    for sender in ["", called] {
        let sent = format!("> <0>{sender} - Sent Xy to <1>");
        assert!(lines.contains(&sent), "{lines:?}");
    }
    let received = "< <1>server - Received Xy from <0>";
    assert_eq!(lines.iter().filter(|line| *line == received).count(), 2);
}

#[test]
fn a_forwarded_message_names_its_sender_in_both_lines() {
    async fn queue(mut cx: Context<(u64, Xy)>, server: Address<Xy>) {
        while let Some((client, xy)) = cx.recv().await {
            forwarding(client, || server.tell(xy)).unwrap();
            server.tell(Xy).unwrap();
        }
    }
    async fn customer(cx: Context<()>, queue: Address<(u64, Xy)>) {
        queue.tell((cx.address().id(), Xy)).unwrap();
    }
    let lines = lines_of(async {
        let server = spawn!(server(_));
        let queue = spawn!(queue(_, server.address()));
        let customer = spawn!(customer(_, queue.address()));
        customer.join().await.unwrap();
        queue.join().await.unwrap();
        server.join().await.unwrap();
    });
    let queue = about(&lines, "queue");
    assert_eq!(queue[2], "> <2>queue - Forward Xy to <1> (from <3>)");
    assert_eq!(queue[3], "> <2>queue - Sent Xy to <1>");
    let server = about(&lines, "server");
    assert_eq!(server[1], "< <1>server - Received Xy from <3>");
    assert_eq!(server[2], "< <1>server - Received Xy from <2>");
}

#[test]
fn a_mapped_message_is_traced_as_the_receiver_gets_it() {
    let lines = lines_of(async {
        let server = spawn!(server(_));
        server.map(|_: u8| Xy).tell(1).unwrap();
        server.join().await.unwrap();
    });
    assert!(lines.contains(&"> <0> - Sent Xy to <1>".to_owned()));
    assert_eq!(
        about(&lines, "server")[1],
        "< <1>server - Received Xy from <0>"
    );
}

#[test]
fn messages_that_are_not_handled_are_dropped_in_order_with_their_senders() {
    async fn first(mut cx: Context<u32>) {
        cx.recv().await.unwrap();
    }
    async fn sends(_cx: Context<()>, to: Address<u32>) {
        to.tell(1).unwrap();
        to.tell(2).unwrap();
    }
    let lines = lines_of(async {
        let first = actor(first).label(|n| ["zero", "one", "two", "three"][*n as usize]);
        let first = first.name("first").spawn();
        let late = first.reserve().await.unwrap();
        spawn!(sends(_, first.address())).join().await.unwrap();
        first.join().await.unwrap();
        late.send(3);
    });
    let kept = about(&lines, "first");
    assert_eq!(kept[1], "< <1>first - Received one from <2>");
    assert!(
        kept.contains(&"< <1>first - Dropped two from <2>".to_owned()),
        "{kept:?}"
    );
    let dropped = "< <1>first - Dropped three from <0>";
    assert_eq!(kept.last().unwrap(), dropped);
}

#[test]
fn a_killed_actor_drops_its_messages() {
    let lines = lines_of(async {
        let server = spawn!(server(_));
        server.tell(Xy).unwrap();
        server.tell(Xy).unwrap();
        server.kill();
        server.join().await.unwrap_err();
    });
    assert_eq!(
        about(&lines, "server"),
        [
            "+ <1>server - Created by <0>",
            "< <1>server - Dropped Xy from <0>",
            "< <1>server - Dropped Xy from <0>",
            "? <1>server - Fault: was killed",
            "X <1>server - Destroyed",
        ]
    );
}

#[test]
fn an_actor_says_which_received_messages_it_drops() {
    let lines = lines_of(async {
        let picky = |mut cx: Context<Xy>| async move {
            let xy = cx.recv().await.unwrap();
            cx.trace_dropped(&xy);
        };
        let picky = actor(picky).name("picky").spawn();
        picky.tell(Xy).unwrap();
        picky.join().await.unwrap();
    });
    assert_eq!(
        about(&lines, "picky")[2],
        "< <1>picky - Dropped Xy from <0>"
    );
}

#[test]
fn answers_and_refusals_are_sent_to_the_actor_that_asks() {
    async fn table(mut cx: Context<(bool, Reply<Xy>)>) {
        while let Some((granted, reply)) = cx.recv().await {
            match granted {
                true => reply.send(Xy),
                false => reply.refuse(Refusal::new("closed", "today")),
            }
        }
    }
    async fn asks(_cx: Context<()>, table: Address<(bool, Reply<Xy>)>) {
        table.ask(|reply| (true, reply)).await.unwrap();
        table.ask(|reply| (false, reply)).await.unwrap_err();
    }
    let lines = lines_of(async {
        let table = spawn!(table(_));
        spawn!(asks(_, table.address())).join().await.unwrap();
        table.ask(|reply| (true, reply)).await.unwrap();
    });
    let table = about(&lines, "table");
    let sent: Vec<_> = table.iter().filter(|line| line.contains("Sent")).collect();
    assert_eq!(
        sent,
        [
            "> <1>table - Sent Xy to <2>",
            "> <1>table - Sent Refusal to <2>"
        ]
    );
}

#[test]
fn an_answer_is_traced_on_threads_that_detect_no_deadlocks() {
    async fn table(mut cx: Context<Reply<Xy>>) {
        cx.recv().await.unwrap().send(Xy);
    }
    let (builder, memory) = traced(Level::Object);
    let runtime = builder.build().unwrap();
    runtime.block_on(async {
        let table = spawn!(table(_));
        let ask = table.address();
        let asks = |_cx: Context<()>| async move {
            ask.ask(|reply| reply).await.unwrap();
        };
        actor(asks).name("asks").spawn().join().await.unwrap();
        table.join().await.unwrap();
    });
    drop(runtime);
    let lines = memory.lines();
    assert!(about(&lines, "table").contains(&"> <1>table - Sent Xy to <2>".to_owned()));
}

#[test]
fn pinned_and_detached_actors_are_traced_and_split_ones_are_not() {
    let (builder, memory) = traced(Level::Object);
    let runtime = builder.build().unwrap();
    let pinned = runtime.spawn_pinned("pinned").unwrap();
    runtime.block_on(async {
        let here = |mut cx: Context<Xy>| async move { cx.recv().await.map(drop) };
        for spawned in [
            actor(here).name("pinned").on(&pinned).spawn(),
            actor(here).name("detached").on(Detached).spawn(),
        ] {
            spawned.tell(Xy).unwrap();
            spawned.join().await.unwrap();
        }
        let (address, future) = actor(here).name("split").split();
        address.tell(Xy).unwrap();
        let _ = future.await;
    });
    drop((pinned, runtime));
    let lines = memory.lines();
    for (name, id) in [("pinned", 1), ("detached", 2)] {
        assert_eq!(
            about(&lines, name),
            [
                format!("+ <{id}>{name} - Created by <0>"),
                format!("< <{id}>{name} - Received Xy from <0>"),
                format!("> <{id}>{name} - Returned Option<()>"),
                format!("X <{id}>{name} - Destroyed"),
            ]
        );
    }
    assert!(about(&lines, "split").is_empty());
}

#[test]
fn a_runtime_without_a_tracer_traces_nothing_for_another() {
    let (builder, memory) = traced(Level::Object);
    let traced = builder.build().unwrap();
    let silent = Runtime::builder()
        .long_turns(None)
        .workers(1)
        .build()
        .unwrap();
    let receiver = spawn!(server(_), on = &silent);
    let address = receiver.address();
    let sends = |_cx: Context<()>| async move { address.tell(Xy).unwrap() };
    traced.block_on(async {
        actor(sends).name("sends").spawn().join().await.unwrap();
    });
    silent.block_on(async { receiver.join().await.unwrap() });
    drop(traced);
    let lines = memory.lines();
    assert_eq!(about(&lines, "sends").len(), 3, "{lines:?}");
    assert!(about(&lines, "server").is_empty());
}

#[test]
fn a_runtime_is_started_and_ended() {
    let (builder, memory) = traced(Level::Object);
    builder.thread_name("pool").build().unwrap();
    assert_eq!(
        memory.lines(),
        ["( <0>pool - Started (workers=1)", ") <0>pool - Ended"]
    );
}
