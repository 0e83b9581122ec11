use std::rc::Rc;

pub struct Counter {
    total: u64,
}

greenroom::handlers! {
    pub impl Counter as CounterAddress, CounterMessage {
        pub async fn add(&mut self, n: u64) {
            self.total += n;
        }
        pub async fn shared(&self) -> Rc<u64> {
            Rc::new(self.total)
        }
    }
}

fn main() {}
