pub struct Counter(u64);

greenroom::handlers! {
    pub impl Counter {
        pub fn add(&mut self, n: u64) {
            self.0 += n;
        }
    }
}

fn main() {}
