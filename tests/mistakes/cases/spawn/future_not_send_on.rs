use std::rc::Rc;

use greenroom::{Context, Runtime, spawn};

async fn tally(mut cx: Context<u64>) -> u64 {
    let shared = Rc::new(1);
    cx.recv().await.unwrap_or(0) + *shared
}

fn main() {
    let runtime = Runtime::builder().build().unwrap();
    let _tally = spawn!(tally(_), on = &runtime);
}
