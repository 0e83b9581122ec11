//! Asks of an actor to itself: they fail at once where nothing can receive the question meanwhile.

use std::future::ready;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, join, select};
use greenroom::{
    Actor, Address, AskError, Context, Fault, Reply, Runtime, actor, concurrently, sequentially,
    spawn, yield_now,
};

use crate::support::{
    Gate, Home, WATCH, drive, in_every_home, names, open_when_pending, poll_once, within,
};

const HOUR: Duration = Duration::from_secs(3600);

type Answer = Result<u32, AskError>;

/// What a handler awaits.
type Work = BoxFuture<'static, Answer>;

#[derive(Default)]
struct Echo {
    said: u32,
    answers: Vec<Answer>,
}

greenroom::handlers! {
    impl Echo as EchoAddress, EchoMessage {
        /// Returns the number of calls.
        async fn say(&mut self) -> u32 {
            self.said += 1;
            self.said
        }

        async fn without_context(&mut self, work: Work) -> Answer {
            work.await
        }

        /// Receives while it waits for the work.
        async fn with_context(
            &mut self,
            work: Work,
            cx: &mut Context<EchoMessage>,
        ) -> Answer {
            let mut work = work;
            loop {
                let received = match select(&mut work, pin!(cx.recv())).await {
                    Either::Left((answer, _)) => return answer,
                    Either::Right((received, _)) => received,
                };
                let Some(EchoMessage::say(reply)) = received else {
                    panic!("no other message was sent");
                };
                reply.send(self.say().await);
            }
        }

        fn ask_later(&mut self, cx: &mut Context<EchoMessage>) {
            let asked = cx.address().request(EchoMessage::say);
            cx.on_answer(asked, EchoMessage::answered);
        }

        fn answered(&mut self, answer: Answer) {
            self.answers.push(answer);
        }

        fn answers(&mut self) -> Vec<Answer> {
            self.answers.clone()
        }

        async fn fail(&mut self) {
            yield_now().await;
            panic!("as it was told");
        }

        fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<EchoMessage>) -> bool {
            true
        }
    }
}

fn echo(home: &Home) -> EchoAddress {
    home.spawn(Echo::default().into_builder().name("echo"))
        .into()
}

/// Returns asks to this actor in all the ways that there are.
fn ways_to_ask(echo: &EchoAddress) -> Vec<Work> {
    let (first, second, third) = (echo.clone(), echo.clone(), echo.clone());
    let (one, other) = (echo.clone(), echo.clone());
    let (weak, mapped) = (echo.downgrade(), echo.map(EchoMessage::say));
    let weak_mapped = mapped.downgrade();
    vec![
        async move { first.say().await }.boxed(),
        async move { second.say().timeout(HOUR).await }.boxed(),
        async move { weak.ask(EchoMessage::say).await }.boxed(),
        async move { mapped.ask(|reply| reply).await }.boxed(),
        async move { weak_mapped.ask(|reply| reply).await }.boxed(),
        echo.request(EchoMessage::say).boxed(),
        echo.request(EchoMessage::say).timeout(HOUR).boxed(),
        async move {
            yield_now().await;
            third.say().await
        }
        .boxed(),
        async move { concurrently([one.say()]).await.pop().unwrap() }.boxed(),
        async move {
            let answers = sequentially([other.say()]).await;
            answers.map(|said| said[0]).map_err(|first| first.error)
        }
        .boxed(),
    ]
}

fn assert_is_own_deadlock(answer: Answer) {
    let Err(AskError::Deadlock(path)) = &answer else {
        panic!("{answer:?}");
    };
    assert_eq!(names(path.as_str()), "echo → echo");
    assert_eq!(
        names(&answer.unwrap_err().to_string()),
        "the actors wait for each other: echo → echo"
    );
}

in_every_home!(
    an_ask_to_oneself_fails_at_once_where_the_context_is_out_of_reach,
    an_ask_to_oneself_fails_in_a_value_that_is_driven_by_hand,
    an_ask_to_oneself_fails_in_an_executor_within_the_handler,
    only_the_ask_to_oneself_fails_beside_others,
    a_closed_actor_that_asks_itself_fails_in_the_same_way,
    a_message_to_oneself_is_sent_without_the_context,
    a_handler_with_the_context_receives_the_question_itself,
    a_handler_with_the_context_asks_after_one_without_has_panicked,
    an_answer_of_oneself_arrives_as_a_message,
    a_question_that_was_sent_before_is_awaited_without_the_context,
    a_task_that_a_handler_spawns_asks_the_actor,
    another_actor_that_runs_the_handler_is_asked_by_it,
    a_function_that_receives_beside_its_own_ask_is_answered,
    a_function_that_selects_between_its_own_ask_and_messages_is_answered,
    a_context_that_was_moved_to_a_task_receives_the_question,
);

fn an_ask_to_oneself_fails_at_once_where_the_context_is_out_of_reach(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        for work in ways_to_ask(&echo) {
            assert_is_own_deadlock(echo.without_context(work).await.unwrap());
        }
        assert_eq!(echo.say().await, Ok(1), "no question was sent before");
    });
}

fn an_ask_to_oneself_fails_in_a_value_that_is_driven_by_hand(home: &Home) {
    let by_hand = actor(|mut cx: Context<EchoMessage>| async move {
        let mut echo = Echo::default();
        while let Some(message) = cx.recv().await {
            echo.handle(message, &mut cx).await;
        }
    });
    let echo = EchoAddress::from(home.spawn(by_hand.name("echo")));
    home.block_on(async {
        let own = echo.clone();
        let work = async move { own.say().await }.boxed();
        assert_is_own_deadlock(echo.without_context(work).await.unwrap());
    });
}

fn an_ask_to_oneself_fails_in_an_executor_within_the_handler(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let own = echo.clone();
        let work = async move { futures::executor::block_on(own.say()) };
        assert_is_own_deadlock(echo.without_context(work.boxed()).await.unwrap());
    });
}

fn only_the_ask_to_oneself_fails_beside_others(home: &Home) {
    let (echo, other) = (echo(home), echo(home));
    home.block_on(async {
        let own = echo.clone();
        let work = async move {
            let answers = concurrently((other.say(), own.say(), other.say())).await;
            assert_eq!((answers.0, answers.2), (Ok(1), Ok(2)));
            answers.1
        };
        assert_is_own_deadlock(echo.without_context(work.boxed()).await.unwrap());
    });
}

fn a_closed_actor_that_asks_itself_fails_in_the_same_way(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let own = echo.clone();
        let work = async move {
            own.stop();
            own.say().await
        };
        assert_is_own_deadlock(echo.without_context(work.boxed()).await.unwrap());
        echo.closed().await;
    });
}

fn a_message_to_oneself_is_sent_without_the_context(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let own = echo.clone();
        let work = async move {
            own.answered(Ok(1)).tell().unwrap();
            own.answered(Ok(2)).send().await.unwrap();
            Ok(0)
        };
        assert_eq!(echo.without_context(work.boxed()).await, Ok(Ok(0)));
        assert_eq!(echo.answers().await, Ok(vec![Ok(1), Ok(2)]));
    });
}

fn a_handler_with_the_context_receives_the_question_itself(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        for (work, said) in ways_to_ask(&echo).into_iter().zip(1..) {
            assert_eq!(echo.with_context(work).await, Ok(Ok(said)));
        }
    });
}

fn a_handler_with_the_context_asks_after_one_without_has_panicked(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let own = echo.clone();
        echo.fail().tell().unwrap();
        let work = async move { own.say().await };
        assert_eq!(echo.with_context(work.boxed()).await, Ok(Ok(1)));
    });
}

fn an_answer_of_oneself_arrives_as_a_message(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        echo.ask_later().tell().unwrap();
        while echo.answers().await.unwrap().is_empty() {
            yield_now().await;
        }
        assert_eq!(echo.answers().await, Ok(vec![Ok(1)]));
    });
}

fn a_question_that_was_sent_before_is_awaited_without_the_context(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let mut asked = echo.request(EchoMessage::say);
        let work = match poll_once(&mut asked) {
            Poll::Ready(answer) => ready(answer).boxed(),
            Poll::Pending => asked.boxed(),
        };
        assert_eq!(echo.without_context(work).await, Ok(Ok(1)));
    });
}

fn a_task_that_a_handler_spawns_asks_the_actor(home: &Home) {
    let echo = echo(home);
    home.block_on(async {
        let (own, asked) = (echo.clone(), Gate::default());
        let (tell, told) = oneshot::channel();
        let work = async move {
            let asks = open_when_pending(asked.clone(), async move { own.say().await });
            spawn(async move { tell.send(asks.await) }).detach();
            asked.wait().await; // so it has asked while the handler waits
            Ok(0)
        };
        assert_eq!(echo.without_context(work.boxed()).await, Ok(Ok(0)));
        assert_eq!(told.await, Ok(Ok(1)));
    });
}

fn another_actor_that_runs_the_handler_is_asked_by_it(home: &Home) {
    let (give, given) = oneshot::channel();
    let gives = actor(|cx: Context<EchoMessage>| async move {
        assert!(give.send(cx).is_ok());
        std::future::pending::<()>().await;
    });
    let gives = home.spawn(gives);
    let runs = actor(|mut cx: Context<Reply<u32>>| async move {
        let mut taken = given.await.unwrap();
        let message = taken.recv().await.unwrap();
        let mut echo = Echo::default();
        let receives = async { cx.recv().await.unwrap().send(7) };
        join(echo.handle(message, &mut taken), receives).await;
    });
    let runs = home.spawn(runs).address();
    home.block_on(async {
        let work = async move { runs.ask(|reply| reply).await }.boxed();
        let asked = gives.ask(|reply| EchoMessage::without_context(work, reply));
        assert_eq!(asked.await, Ok(Ok(7)));
        gives.kill();
    });
}

fn a_function_that_receives_beside_its_own_ask_is_answered(home: &Home) {
    let asks = actor(|mut cx: Context<Reply<u32>>| async move {
        let own = cx.address();
        let receives = async { cx.recv().await.unwrap().send(7) };
        join(own.ask(|reply| reply), receives).await.0
    });
    let asks = home.spawn(asks);
    assert_eq!(home.block_on(asks.join()).unwrap(), Ok(7));
}

fn a_function_that_selects_between_its_own_ask_and_messages_is_answered(home: &Home) {
    let asks = actor(|mut cx: Context<Reply<u32>>| async move {
        let own: Address<Reply<u32>> = cx.address();
        let mut asked = pin!(own.ask(|reply| reply).timeout(HOUR));
        loop {
            match select(asked.as_mut(), pin!(cx.recv())).await {
                Either::Left((answer, _)) => return answer,
                Either::Right((reply, _)) => reply.unwrap().send(7),
            }
        }
    });
    let asks = home.spawn(asks);
    assert_eq!(home.block_on(asks.join()).unwrap(), Ok(7));
}

fn a_context_that_was_moved_to_a_task_receives_the_question(home: &Home) {
    let asks = actor(|mut cx: Context<Reply<u32>>| async move {
        let own = cx.address();
        let receives = spawn(async move { cx.recv().await.unwrap().send(7) });
        let answer = own.ask(|reply| reply).await;
        receives.await;
        answer
    });
    let asks = home.spawn(asks);
    assert_eq!(home.block_on(asks.join()).unwrap(), Ok(7));
}

#[test]
fn a_split_actor_that_asks_itself_fails_as_well() {
    within(WATCH, || {
        let (address, future) = Echo::default().into_builder().name("echo").split();
        let echo = EchoAddress::from(address);
        let asks = async move {
            for work in ways_to_ask(&echo) {
                assert_is_own_deadlock(echo.without_context(work).await.unwrap());
            }
            assert_eq!(echo.say().await, Ok(1), "no question was sent before");
        };
        let (ended, ()) = drive(join(future, asks));
        assert_eq!(ended.unwrap().said, 1);
    });
}

/// Runs the task on the stack of the handler: `block_on` does that in a simulation.
#[test]
fn a_task_that_runs_within_the_poll_of_a_handler_asks_the_actor() {
    Home::simulate(|runtime| {
        runtime.block_on(async {
            let echo = EchoAddress::from(spawn!(Echo::default()));
            let (own, asked) = (echo.clone(), Gate::default());
            let (tell, told) = oneshot::channel();
            let work = async move {
                let asks = open_when_pending(asked.clone(), async move { own.say().await });
                spawn(async move { tell.send(asks.await) }).detach();
                Runtime::current().block_on(asked.wait());
                Ok(0)
            };
            assert_eq!(echo.without_context(work.boxed()).await, Ok(Ok(0)));
            assert_eq!(told.await, Ok(Ok(1)));
        });
    });
}
