//! The same program and seed produce the same run on any machine: this file has the fingerprint of
//! each run.
//!
//! Any change of what a simulation does, or in which order, changes the fingerprints. The failing
//! test prints the new table.

use std::future::Future;
use std::time::Duration;

use greenroom::{Context, Handle, Reply, Runtime, spawn, time};

use crate::hunt::{Program, Version, run};
use crate::{
    answer_first, ask_cycle, forgotten_reply, full_mailboxes, late_answer, lost_update,
    order_of_senders, same_moment,
};

const SEEDS: u64 = 6;
type Row = (&'static str, [u64; SEEDS as usize]);

const GOLDEN: [Row; 12] = [
    (
        "ask_cycle",
        [
            0x6d9923c107e100ff,
            0x30f53bf870f778e5,
            0xaa4875ae5f3985e3,
            0x02e9a452e096de1c,
            0xb4b121dfb0e50d48,
            0x59e336b75eefd4b0,
        ],
    ),
    (
        "forgotten_reply",
        [
            0xe0f580b76e0a26b2,
            0x33defcfd05b23f6d,
            0x34bde4fdf631ffa0,
            0xd22403c062e344b1,
            0x787352f52d7a1d2d,
            0x1b8b9611406a8f77,
        ],
    ),
    (
        "full_mailboxes",
        [
            0x44fd054fd83631bc,
            0x862d84a88eecd034,
            0xc342fa39529991f1,
            0xe65ea08991176584,
            0xd203668bb8c9b4f3,
            0x3a8646a8f07f79ae,
        ],
    ),
    (
        "late_answer",
        [
            0x946193b167d9896c,
            0x349468058f22daea,
            0x7da5ae2f076062fa,
            0x62ab4f85dfa51b63,
            0xdbb6348e3598d6ef,
            0x671f1d6b60076512,
        ],
    ),
    (
        "lost_update",
        [
            0xa1ffc435e247ffcc,
            0xf7d1aec23abc4ddc,
            0xa2b33667ec214955,
            0xb01a6cbd1d525cab,
            0x15c22c560d53706e,
            0x9537240d88eaaf1f,
        ],
    ),
    (
        "order_of_senders",
        [
            0xbb35c056428a52e0,
            0x955ff65dd7203801,
            0xceb2ec8408ef02d9,
            0xc33c3a017651a392,
            0xe5c6e81afe8e05d4,
            0x2b6bdd03333cc269,
        ],
    ),
    (
        "answer_first",
        [
            0x42ecda3cafd60e43,
            0x183d82ab29c40d89,
            0x279eca458e80412d,
            0x0ffee875966f9804,
            0x6a894b896c606cc9,
            0xa7264de3032a498e,
        ],
    ),
    (
        "same_moment",
        [
            0x7d828266c4ab2cfa,
            0x43f4e39911809c60,
            0xa41a95039d17a195,
            0xe46b9c628c528e98,
            0x61e16cf99a40fc7a,
            0xe5c3ef548480fded,
        ],
    ),
    (
        "tasks",
        [
            0x6a4066db153225b5,
            0x4d5d067b53de6ab1,
            0xa36a1f19bc7d0bea,
            0xa348b5e5fc27d2fa,
            0xabf85181b6b0cf77,
            0x42f109aa23c85e41,
        ],
    ),
    (
        "sources",
        [
            0x6b037fb70a6a1af2,
            0x02349fc69bdfb4ad,
            0xe614754a9dc5707f,
            0x96372dc4991472ef,
            0x3623b97639cc22c3,
            0x6bff4482cf76fb8f,
        ],
    ),
    (
        "threads",
        [
            0xa6da21fd478e2452,
            0xb0f6acd7ef70c5c9,
            0x2f60c3f6998641d2,
            0x031925f320bbfea9,
            0xe0c24a638fc89fa2,
            0xeb9e5ee252d6fe99,
        ],
    ),
    (
        "ends",
        [
            0x0d956a8501e5b883,
            0x4a12204375601aaa,
            0x6ea36e7ffab3299e,
            0xbddcafe0c2a61e1c,
            0xdc47888fd53e720a,
            0x87cb1bc036e99c28,
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

fn table() -> [Row; 12] {
    use Version::{Buggy, Mended};
    [
        row("ask_cycle", ask_cycle::shop, Buggy),
        row("forgotten_reply", forgotten_reply::site, Buggy),
        row("full_mailboxes", full_mailboxes::import, Buggy),
        row("late_answer", late_answer::till, Buggy),
        row("lost_update", lost_update::bank, Buggy),
        row("order_of_senders", order_of_senders::newspaper, Buggy),
        row("answer_first", answer_first::commit, Buggy),
        row("same_moment", same_moment::cluster, Buggy),
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
        panic!("the runs differ from the fingerprints in this file");
    }
}

#[test]
fn other_activity_of_the_process_does_not_change_a_run() {
    let before = table();
    // Other threads allocate numbers and memory meanwhile.
    let threads = [(); 3].map(|()| std::thread::spawn(table));
    for thread in threads {
        assert_eq!(thread.join().unwrap(), before);
    }
    assert_eq!(table(), before);
}

const SOON: Duration = Duration::from_millis(3);

/// Runs tasks that spawn, yield, sleep, and are cancelled before their first turn or after it.
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

/// Runs actors with timers, streams and adopted results, which ask and tell each other.
async fn sources(_: Version) {
    async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
        while let Some((number, reply)) = cx.recv().await {
            time::sleep(SOON).await;
            reply.send(2 * number);
        }
    }
    async fn collector(mut cx: Context<u32>, most: usize) -> Vec<u32> {
        let doubler = spawn!(doubler(_), capacity = 1);
        cx.attach(futures::stream::iter([1, 2, 3])).detach();
        let ticks = cx.send_every(SOON, || 10);
        cx.send_after(2 * SOON, 20).detach();
        let asked = doubler.address();
        let answer = async move { asked.ask(|reply| (15, reply)).await };
        cx.on_return(answer, |answer| answer.unwrap().unwrap());
        cx.on_join(spawn!(|_cx: Context<()>| async { 40 }), |result| {
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

/// Runs pinned threads, hosted values, a detached actor, blocking jobs, and nested calls of
/// `block_on`.
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

/// Runs actors that are stopped, killed and dropped with messages left, and a shutdown meanwhile.
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
