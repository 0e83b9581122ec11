//! Requests that own their address, and answers that arrive as messages.

use greenroom::{Address, AskCause, AskError, Context, Reply, actor};

use crate::support::{Bomb, Drops, Home, in_every_home, keep_bombs_quiet};

in_every_home!(
    answers_arrive_as_messages_and_keep_the_actor_open,
    a_request_is_sent_before_later_messages,
    requests_in_flight_are_dropped_when_the_actor_receives_after_the_close,
    a_lost_reply_names_the_actor_and_its_end,
);

/// Answers the questions in the reverse order, once it has three.
async fn reverse(mut cx: Context<(u32, Reply<u32>)>) {
    let mut questions = Vec::new();
    while let Some(question) = cx.recv().await {
        questions.push(question);
        if questions.len() == 3 {
            while let Some((number, reply)) = questions.pop() {
                reply.send(number * 10);
            }
        }
    }
}

fn answers_arrive_as_messages_and_keep_the_actor_open(home: &Home) {
    let reverse = home.spawn(actor(reverse));
    let address = reverse.address();
    let asker = home.spawn(actor(
        async move |mut cx: Context<(u32, Result<u32, AskError>)>| {
            for number in 1..=3 {
                let request = address.request(move |reply| (number, reply));
                cx.on_answer(request, move |answer| (number, answer));
            }
            let mut answers = Vec::new();
            while let Some((number, answer)) = cx.recv().await {
                answers.push((number, answer.unwrap()));
            }
            answers
        },
    ));
    let mut answers = home.block_on(asker.join()).unwrap();
    answers.sort();
    assert_eq!(answers, [(1, 10), (2, 20), (3, 30)]);
}

fn a_request_is_sent_before_later_messages(home: &Home) {
    let numbers = home.spawn(actor(async |mut cx: Context<(u32, Option<Reply<u32>>)>| {
        let mut numbers = Vec::new();
        while let Some((number, _reply)) = cx.recv().await {
            numbers.push(number);
        }
        numbers
    }));
    let address = numbers.address();
    let asker = home.spawn(actor(async move |mut cx: Context<()>| {
        cx.on_answer(address.request(|reply| (1, Some(reply))), drop);
        address.tell((2, None)).unwrap();
        drop(address);
        cx.recv().await
    }));
    home.block_on(async {
        assert_eq!(asker.join().await.unwrap(), Some(()));
        assert_eq!(numbers.join().await.unwrap(), [1, 2]);
    });
}

fn requests_in_flight_are_dropped_when_the_actor_receives_after_the_close(home: &Home) {
    let (give, question) = greenroom::reply::<Reply<u32>>();
    let asked = home.spawn(actor(async move |mut cx: Context<Reply<u32>>| {
        give.send(cx.recv().await.unwrap());
    }));
    let address: Address<Reply<u32>> = asked.address();
    let asker = home.spawn(actor(
        async move |mut cx: Context<Result<u32, AskError>>| {
            cx.on_answer(address.request(|reply| reply), |answer| answer);
            cx.recv().await
        },
    ));
    home.block_on(async {
        let question = question.await.unwrap();
        assert!(question.is_wanted());
        asker.stop();
        assert_eq!(asker.join().await.unwrap(), None);
        assert!(!question.is_wanted());
        asked.join().await.unwrap();
    });
}

fn a_lost_reply_names_the_actor_and_its_end(home: &Home) {
    keep_bombs_quiet();
    for why in [
        AskCause::Panicked("bomb in a drop".into()),
        AskCause::Killed,
        AskCause::Ended,
        AskCause::ReplyDropped,
    ] {
        let way = why.clone();
        let fragile = actor(async move |mut cx: Context<Reply<u32>>| {
            let kept = match way {
                AskCause::Ended => None, // the question stays in the mailbox
                _ => cx.recv().await,
            };
            match way {
                AskCause::Panicked(_) => drop(Bomb::new(true, &Drops::default())),
                AskCause::Killed => {
                    cx.address().kill();
                    std::future::pending().await
                }
                _ => drop(kept),
            }
        });
        let held = home.hold();
        let fragile = home.spawn(fragile.name("fragile"));
        let (reply, answer) = greenroom::reply();
        fragile.tell(reply).unwrap();
        drop(held);
        let Err(AskError::NoReply(detail)) = home.block_on(answer) else {
            panic!("there is no reply");
        };
        assert_eq!(*detail.why(), why);
        // No actor was asked, so only an end has a name.
        let named = detail.actor().and_then(|actor| actor.name());
        assert_eq!(named.is_some(), why != AskCause::ReplyDropped);
        assert!(named.is_none_or(|name| name == "fragile"));
        drop(home.block_on(fragile.join()));
    }
}
