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
        pub fn wait(&mut self) {
            greenroom::yield_now().await;
        }
    }
}

fn main() {
    greenroom::run(async {
        let counter: CounterAddress = spawn!(Counter::default()).into();
        counter.add(3).tell().unwrap();
    });
}
