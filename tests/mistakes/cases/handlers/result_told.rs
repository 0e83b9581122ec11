use greenroom::spawn;

#[derive(Default)]
pub struct Counter {
    total: u64,
}

greenroom::handlers! {
    pub impl Counter as CounterAddress, CounterMessage {
        pub async fn add(&mut self, n: u64) {
            self.total += n;
        }
        pub async fn total(&mut self) -> u64 {
            self.total
        }
    }
}

fn main() {
    greenroom::run(async {
        let counter: CounterAddress = spawn!(Counter::default()).into();
        counter.add(3).tell().unwrap();
        counter.total().tell().unwrap();
    });
}
