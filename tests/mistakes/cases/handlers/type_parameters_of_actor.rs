pub struct Stack<T> {
    items: Vec<T>,
}

greenroom::handlers! {
    pub impl<T> Stack<T> as StackAddress, StackMessage {
        pub async fn push(&mut self, item: T) {
            self.items.push(item);
        }
    }
}

fn main() {}
