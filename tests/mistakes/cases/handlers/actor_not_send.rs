use std::rc::Rc;

pub struct Counter {
    total: Rc<u64>,
}

greenroom::handlers! {
    pub impl Counter as CounterAddress, CounterMessage {
        pub fn add(&mut self, n: u64) {
            self.total = Rc::new(*self.total + n);
        }
    }
}

fn main() {}
