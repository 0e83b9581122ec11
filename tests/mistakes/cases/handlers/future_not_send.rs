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
        pub async fn hold(&mut self) {
            let n = std::rc::Rc::new(1);
            greenroom::yield_now().await;
            self.total += *n;
        }
    }
}

fn main() {
    greenroom::run(async {
        let counter: CounterAddress = spawn!(Counter::default()).into();
        counter.add(3).tell().unwrap();
    });
}
