//! The same program and seed give the same run on any machine: what each run comes to as a number
//! stands here.
//!
//! Whatever changes what a simulation does, or the order in which it does it, changes the numbers; the
//! failing test prints the new table.

use std::future::Future;
use std::time::Duration;

use greenroom::{Context, Handle, Reply, Runtime, spawn, time};

use crate::hunt::{Program, Version, run};
use crate::{
    ask_cycle, forgotten_reply, full_mailboxes, late_answer, lost_update, order_of_senders,
};

const SEEDS: u64 = 6;
type Row = (&'static str, [u64; SEEDS as usize]);

const GOLDEN: [Row; 10] = [
    (
        "ask_cycle",
        [
            0x0e7e325c3f8c6d7c,
            0x5114ee490170c028,
            0x1ceb19ae51b854c8,
            0xb93de1b182f961a9,
            0xef516194a595152a,
            0xc064e4cd4b519f3b,
        ],
    ),
    (
        "forgotten_reply",
        [
            0xdc62573705368b74,
            0x946728938defec3e,
            0x6257dd7fdb008000,
            0xd6536d0c858ef205,
            0xb767c66312f0dd3e,
            0x0750294c2e0d96a2,
        ],
    ),
    (
        "full_mailboxes",
        [
            0x4c421988cf48e1f8,
            0x0f72a3094d2efebb,
            0xeabdf2723fed43bb,
            0x54a1acb359151f38,
            0xfe5b198cfe643d42,
            0xa3394bc7c5f31a82,
        ],
    ),
    (
        "late_answer",
        [
            0x93d9612951d774fd,
            0xccc88baf43d842ea,
            0xc1d543395785e353,
            0xe032d97763662047,
            0xae6748634971db9a,
            0xae6748634971db9a,
        ],
    ),
    (
        "lost_update",
        [
            0x5b499b2086726673,
            0x65f6115a31327b25,
            0x31b2526407a50ddf,
            0xe4ee7e462dc428d3,
            0x1bb79f200435ee03,
            0x9a3e192f49c38098,
        ],
    ),
    (
        "order_of_senders",
        [
            0x94a71be5ffd735e9,
            0xc4c42b4916b079f5,
            0x64429ea69897d789,
            0x7ce6569746544190,
            0xa35e54dfa1cf78ca,
            0x9808ce27f93cc40e,
        ],
    ),
    (
        "tasks",
        [
            0x87ab744a9022a0f3,
            0xd66f91534a646173,
            0x84e1f92cbff076f3,
            0xc35b60c614c1876f,
            0x2fb7f6e0b71bf8cc,
            0x71913e16322ecfa1,
        ],
    ),
    (
        "sources",
        [
            0x30b4afe1c054f6a3,
            0x39a354a5ac3c18d4,
            0xba422895f84238c6,
            0x2ad14da08007b032,
            0xdc1bd7a61e03d785,
            0xc80cd2aecc435d7b,
        ],
    ),
    (
        "threads",
        [
            0xecf30c81aad1d19f,
            0xd668ee8326735cb4,
            0x80da18da164a35f5,
            0x68c08f0d5dfa9634,
            0xfe0c8227481ce2e0,
            0xcce67034b2bb8541,
        ],
    ),
    (
        "ends",
        [
            0xc7092965751aa324,
            0x9ae56f05ee037b45,
            0x0cf1a22356c2636e,
            0x1e1b23bf170b2191,
            0xf8250e53bca723c0,
            0xe7530092b9a4bd8b,
        ],
    ),
];

fn row<F: Future>(name: &'static str, program: Program<F>, version: Version) -> Row {
    let number = |seed| match run(program, version, seed as u64) {
        Ok(run) => run.fingerprint,
        Err(failure) if version == Version::Buggy => failure.fingerprint(),
        Err(failure) => panic!("{failure}"),
    };
    (name, std::array::from_fn(number))
}

fn table() -> [Row; 10] {
    use Version::{Buggy, Mended};
    [
        row("ask_cycle", ask_cycle::shop, Buggy),
        row("forgotten_reply", forgotten_reply::site, Buggy),
        row("full_mailboxes", full_mailboxes::import, Buggy),
        row("late_answer", late_answer::till, Buggy),
        row("lost_update", lost_update::bank, Buggy),
        row("order_of_senders", order_of_senders::newspaper, Buggy),
        row("tasks", tasks, Mended),
        row("sources", sources, Mended),
        row("threads", threads, Mended),
        row("ends", ends, Mended),
    ]
}

#[test]
fn a_seed_gives_the_same_run_on_any_machine() {
    let table = table();
    if table[..] != GOLDEN[..] {
        println!("const GOLDEN: [Row; {}] = [", table.len());
        for (name, numbers) in table {
            println!("    (\"{name}\", [");
            for number in numbers {
                println!("        {number:#018x},");
            }
            println!("    ]),");
        }
        println!("];");
        panic!("other runs than those whose numbers are here");
    }
}

#[test]
fn what_else_a_process_does_makes_no_difference() {
    let before = table();
    // Others take numbers and memory meanwhile.
    let threads = [(); 3].map(|()| std::thread::spawn(table));
    for thread in threads {
        assert_eq!(thread.join().unwrap(), before);
    }
    assert_eq!(table(), before);
}

const SOON: Duration = Duration::from_millis(3);

/// Tasks that spawn, yield, sleep, and are cancelled before their first run and after it.
async fn tasks(_: Version) {
    let group = |number: u32| {
        greenroom::spawn(async move {
            let mut sum = 0;
            for part in 0..number {
                let task = greenroom::spawn(async move {
                    greenroom::yield_now().await;
                    time::sleep(SOON / (part + 1)).await;
                    part
                });
                match part % 4 {
                    0 => drop(task),
                    1 => drop(time::timeout(SOON / 2, task).await),
                    2 => task.detach(),
                    _ => sum += task.await,
                }
            }
            sum
        })
    };
    let groups = [3, 5, 9].map(group);
    for group in groups {
        group.await;
    }
}

/// Actors with timers, streams, and the results of others, which answer and tell each other.
async fn sources(_: Version) {
    async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
        while let Some((number, reply)) = cx.recv().await {
            time::sleep(SOON).await;
            reply.send(2 * number);
        }
    }
    async fn collector(mut cx: Context<u32>, most: usize) -> Vec<u32> {
        let doubler = spawn!(doubler(_), capacity = 1);
        cx.attach(futures::stream::iter([1, 2, 3]));
        let ticks = cx.send_every(SOON, || 10);
        cx.send_after(2 * SOON, 20).detach();
        let asked = doubler.address();
        let answer = async move { asked.ask(|reply| (15, reply)).await };
        cx.on_return(answer, |answer| answer.unwrap().unwrap());
        cx.on_return(spawn!(|_cx: Context<()>| async { 40 }), |result| {
            result.unwrap()
        });
        let mut all = Vec::new();
        while let Some(number) = cx.recv().await {
            all.push(number);
            if all.len() == most {
                break;
            }
        }
        drop(ticks);
        all
    }
    let collectors: Vec<Handle<u32, Vec<u32>>> = (8..11)
        .map(|most| spawn!(collector(_, most), capacity = 2))
        .collect();
    let senders = [0, 1, 2].map(|at| {
        let to = collectors[at].address();
        greenroom::spawn(async move {
            for number in 50..54 {
                let _ = to.send(number).await;
            }
        })
    });
    for sender in senders {
        sender.await;
    }
    for collector in collectors {
        collector.join().await.unwrap();
    }
}

/// Pinned threads, hosted values, a detached actor, blocking jobs, and calls of `block_on` in tasks.
async fn threads(_: Version) {
    let pinned = ["one", "two"].map(|name| Runtime::current().spawn_pinned(name).unwrap());
    let list = pinned[0]
        .host(|| std::rc::Rc::new(vec![1, 2]))
        .await
        .unwrap();
    let lengths = [1, 2, 3].map(|number| {
        let (list, other) = (list.clone(), pinned[1].clone());
        greenroom::spawn(async move {
            let doubled = other.spawn(move || async move {
                time::sleep(SOON).await;
                2 * number
            });
            let sum = greenroom::unblock(move || number + 1);
            let inner = Runtime::current().block_on(async { doubled.await + sum.await });
            list.with(move |list| list.len() + inner).await.unwrap()
        })
    });
    let detached = spawn!(
        |mut cx: Context<usize>| async move { cx.recv().await },
        on = greenroom::Detached
    );
    for length in lengths {
        let _ = detached.tell(length.await);
    }
    detached.join().await.unwrap();
}

/// Actors that are stopped, killed and dropped with messages left, and a shutdown amid of it.
async fn ends(_: Version) {
    async fn slow(mut cx: Context<u32>) -> u32 {
        let mut sum = 0;
        while let Some(number) = cx.recv().await {
            time::sleep(SOON).await;
            sum += number;
        }
        sum
    }
    let actors: Vec<_> = (0..6).map(|_| spawn!(slow(_))).collect();
    for (number, actor) in actors.iter().enumerate() {
        for message in 0..4 {
            actor.tell(message).unwrap();
        }
        match number % 3 {
            0 => actor.stop(),
            1 => actor.kill(),
            _ => time::sleep(SOON).await,
        }
    }
    actors[0].closed().await;
    greenroom::spawn(std::future::pending::<()>()).detach();
    let report = greenroom::spawn(async { Runtime::current().shutdown().await }).await;
    assert!(report.ended > 0);
    drop(actors);
}
