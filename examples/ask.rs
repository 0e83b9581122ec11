//! This example shows asks: a request is a message that carries a `Reply`, and the reply is
//! awaited.
//!
//! It uses `ask`, a `Reply` that is forwarded to another actor, a timeout, and the error of an ask
//! that is never answered. It prints:
//!
//! ```text
//! 6 * 7 = 42
//! asked through the front desk: 12
//! no answer in time
//! no answer: calculator #1 dropped the reply
//! ```

use std::time::Duration;

use greenroom::{Address, AskError, Context, Reply, spawn};

enum Question {
    Multiply(u64, u64, Reply<u64>),
    /// Never answered, but its reply is kept.
    Ponder(Reply<u64>),
    Ignore(Reply<u64>),
}

async fn calculator(mut cx: Context<Question>) {
    let mut pondered = Vec::new();
    while let Some(question) = cx.recv().await {
        match question {
            Question::Multiply(a, b, reply) => reply.send(a * b),
            Question::Ponder(reply) => pondered.push(reply),
            Question::Ignore(reply) => drop(reply),
        }
    }
}

/// Forwards each question with its reply, and answers nothing itself.
async fn front_desk(mut cx: Context<(u64, Reply<u64>)>, calculator: Address<Question>) {
    while let Some((number, reply)) = cx.recv().await {
        if calculator
            .tell(Question::Multiply(number, 2, reply))
            .is_err()
        {
            return;
        }
    }
}

fn main() {
    greenroom::run(async {
        let calculator = spawn!(calculator(_));
        let product = calculator
            .ask(|reply| Question::Multiply(6, 7, reply))
            .await;
        println!("6 * 7 = {}", product.expect("the calculator replies"));

        let desk = spawn!(front_desk(_, calculator.address()));
        let doubled = desk.ask(|reply| (6, reply)).await;
        println!(
            "asked through the front desk: {}",
            doubled.expect("the calculator replies")
        );

        let late = calculator
            .ask(Question::Ponder)
            .timeout(Duration::from_millis(20));
        assert_eq!(late.await, Err(AskError::TimedOut));
        println!("no answer in time");

        let Err(AskError::NoReply(detail)) = calculator.ask(Question::Ignore).await else {
            panic!("the calculator drops the reply");
        };
        println!("no answer: {detail}");
    });
}
