pub struct Counter {
    total: u64,
}

greenroom::handlers! {
    impl Counter as CounterAddress, CounterMessage {
        pub async fn add(&mut self, n: u64) {
            self.total += n;
        }
    }
}

fn main() {}
