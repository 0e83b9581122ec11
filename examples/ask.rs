//! Asking: a question is a message that carries a `Reply`, and the answer is awaited.
//!
//! Shows `ask`, a `Reply` that is forwarded to another actor, a time-out, and what an asker hears
//! when nobody answers. Prints:
//!
//! ```text
//! 6 * 7 = 42
//! asked through the front desk: 12
//! no answer in time
//! the question was dropped
//! ```

use std::time::Duration;

use greenroom::{Address, AskError, Context, Reply, spawn};

enum Question {
    Multiply(u64, u64, Reply<u64>),
    /// Nobody gets an answer to this one.
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

/// Answers nothing itself: the reply goes on with the question.
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
        println!("6 * 7 = {}", product.expect("it answers"));

        let desk = spawn!(front_desk(_, calculator.address()));
        let doubled = desk.ask(|reply| (6, reply)).await;
        println!(
            "asked through the front desk: {}",
            doubled.expect("it answers")
        );

        let late = calculator
            .ask(Question::Ponder)
            .timeout(Duration::from_millis(20));
        assert_eq!(late.await, Err(AskError::TimedOut));
        println!("no answer in time");

        assert_eq!(
            calculator.ask(Question::Ignore).await,
            Err(AskError::NoReply)
        );
        println!("the question was dropped");
    });
}
