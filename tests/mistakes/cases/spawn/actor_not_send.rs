use std::rc::Rc;

use greenroom::{Actor, Context};

struct Counter {
    total: Rc<u64>,
}

impl Actor for Counter {
    type Message = u64;

    async fn handle(&mut self, n: u64, _cx: &mut Context<u64>) {
        self.total = Rc::new(*self.total + n);
    }
}

fn main() {}
