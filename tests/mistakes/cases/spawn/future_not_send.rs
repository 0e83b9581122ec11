use std::rc::Rc;

use greenroom::{Context, spawn};

async fn tally(mut cx: Context<u64>) -> u64 {
    let shared = Rc::new(1);
    cx.recv().await.unwrap_or(0) + *shared
}

fn main() {
    greenroom::run(async {
        let _tally = spawn!(tally(_));
    });
}
