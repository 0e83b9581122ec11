//! tokio's own tasks, timers and sockets in actors of greenroom.

use std::time::Duration;

use greenroom::{Context, Detached, Fault, Reply, Runtime, spawn, unblock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::with_both;

const MILLI: Duration = Duration::from_millis(1);

/// Uses what needs tokio's context; returns a sum that shows that each part did its work.
async fn uses_tokio() -> u32 {
    tokio::time::sleep(MILLI).await;
    let late = tokio::time::timeout(MILLI, std::future::pending::<()>()).await;
    let late = u32::from(late.is_err());
    let mut ticks = tokio::time::interval(MILLI);
    ticks.tick().await;
    ticks.tick().await;
    late + tokio::spawn(async { 1 }).await.unwrap()
        + tokio::task::spawn_blocking(|| 1).await.unwrap()
}

#[test]
fn tasks_and_timers_of_tokio_work_in_every_place() {
    with_both(|both| {
        let actor = |_: Context<()>| uses_tokio();
        let pinned = both.runtime.spawn_pinned("pinned").unwrap();
        both.runtime.block_on(async {
            let here = spawn!(actor);
            let there = spawn!(actor, on = &pinned);
            let alone = spawn!(actor, on = Detached);
            let blocks = |_: Context<()>| async { Runtime::current().block_on(uses_tokio()) };
            let blocks = spawn!(blocks, on = Detached);
            let on_tokio = spawn!(actor, on = both.tokio.handle());
            for actor in [
                here.join().await,
                there.join().await,
                alone.join().await,
                blocks.join().await,
                on_tokio.join().await,
            ] {
                assert_eq!(actor.unwrap(), 3);
            }
            let job = unblock(|| tokio::runtime::Handle::current().block_on(uses_tokio()));
            assert_eq!(job.await, 3);
        });
    });
}

#[test]
fn a_thread_that_calls_block_on_enters_by_itself() {
    with_both(|both| {
        let _entered = both.tokio.enter();
        assert_eq!(both.runtime.block_on(uses_tokio()), 3);
    });
}

#[test]
fn the_result_of_a_task_of_tokio_is_a_message() {
    enum Word {
        Begin,
        Done(Result<Result<u32, tokio::task::JoinError>, Fault>),
    }
    with_both(|both| {
        let actor = |mut cx: Context<Word>| async move {
            let mut sum = 0;
            while let Some(word) = cx.recv().await {
                match word {
                    Word::Begin => {
                        cx.on_return(tokio::spawn(uses_tokio()), Word::Done);
                    }
                    Word::Done(value) => sum += value.unwrap().unwrap(),
                }
            }
            sum
        };
        let actor = spawn!(actor, on = &both.runtime);
        for _ in 0..10 {
            actor.tell(Word::Begin).unwrap();
        }
        assert_eq!(both.runtime.block_on(actor.join()).unwrap(), 30);
    });
}

#[test]
fn actors_are_both_ends_of_a_socket_of_tokio() {
    async fn server(_: Context<()>, port: Reply<u16>) -> u64 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        port.send(listener.local_addr().unwrap().port());
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut sum = 0;
        while let Ok(number) = socket.read_u64().await {
            sum += number;
        }
        sum
    }
    async fn client(mut cx: Context<u64>, port: u16) {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        while let Some(number) = cx.recv().await {
            socket.write_u64(number).await.unwrap();
        }
    }
    with_both(|both| {
        both.runtime.block_on(async {
            let (tells, port) = Reply::pair();
            let server = spawn!(server(_, tells));
            let client = spawn!(client(_, port.await.unwrap()), capacity = 10);
            for number in 1..=1000 {
                client.send(number).await.unwrap();
            }
            client.join().await.unwrap();
            assert_eq!(server.join().await.unwrap(), 500_500);
        });
    });
}
