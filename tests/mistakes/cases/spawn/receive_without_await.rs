#![deny(unused_must_use)]

use greenroom::{Context, spawn};

async fn ignores(mut cx: Context<u64>) {
    cx.recv();
}

fn main() {
    greenroom::run(async {
        spawn!(ignores(_)).detach();
    });
}
