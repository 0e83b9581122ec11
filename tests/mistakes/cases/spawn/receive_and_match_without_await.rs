use greenroom::{Context, spawn};

async fn receives(mut cx: Context<u64>) {
    while let Some(number) = cx.recv() {
        println!("{number}");
    }
}

fn main() {
    greenroom::run(async {
        spawn!(receives(_)).detach();
    });
}
