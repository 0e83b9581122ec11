use greenroom::{AskError, Context};

pub struct Counter {
    total: u64,
}

greenroom::handlers! {
    pub impl Counter as CounterAddress, CounterMessage {
        pub fn total(&self) -> u64 {
            self.total
        }
    }
}

enum Message {
    Total(Result<u64, AskError>),
}

async fn asker(mut cx: Context<Message>, counter: CounterAddress) -> Option<u64> {
    cx.on_answer(counter.total(), Message::Total);
    let Message::Total(total) = cx.recv().await?;
    total.ok()
}

fn main() {}
