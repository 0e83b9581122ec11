struct Counter {
    total: u64,
}

fn main() {
    greenroom::run(async {
        let _counter = greenroom::spawn!(Counter { total: 40 });
    });
}
