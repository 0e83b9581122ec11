use greenroom::{Address, AskError, Context, Reply};

enum Message {
    Total(Result<u64, AskError>),
}

async fn asker(mut cx: Context<Message>, counter: Address<Reply<u64>>) -> Option<u64> {
    cx.on_answer(counter.ask(|reply| reply), |total| Message::Total(total));
    let Message::Total(total) = cx.recv().await?;
    total.ok()
}

fn main() {}
