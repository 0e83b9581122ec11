#![deny(unused_must_use)]

use greenroom::spawn;

pub struct Counter(u64);

greenroom::handlers! {
    pub impl Counter as CounterAddress, CounterMessage {
        pub fn add(&mut self, n: u64) {
            self.0 += n;
        }
    }
}

fn main() {
    greenroom::run(async {
        let counter: CounterAddress = spawn!(Counter(0)).into();
        counter.add(3);
    });
}
