//! This example shows an actor as a value: its state is a struct, its handlers are methods.
//!
//! It uses the trait `Actor` with its hooks, code that is generic over actors, and a `join` that
//! returns the value. It prints:
//!
//! ```text
//! the till opens
//! 3 coffees for 7.50
//! the till closes
//! 11.00 in the till
//! ```

use greenroom::{Actor, Context, Reply, spawn};

#[derive(Default)]
struct Till {
    cents: u64,
}

enum Order {
    Coffees(u64, Reply<u64>),
    Tea,
}

impl Actor for Till {
    type Message = Order;

    async fn started(&mut self, _cx: &mut Context<Order>) {
        println!("the till opens");
    }

    async fn handle(&mut self, order: Order, _cx: &mut Context<Order>) {
        match order {
            Order::Coffees(count, reply) => {
                self.cents += 250 * count;
                reply.send(250 * count);
            }
            Order::Tea => self.cents += 350,
        }
    }

    async fn stopped(&mut self, _cx: &mut Context<Order>) {
        println!("the till closes");
    }
}

/// Sends messages to any actor, and returns the actor after it has ended.
async fn after<A>(actor: A, messages: impl IntoIterator<Item = A::Message>) -> A
where
    A: Actor + 'static,
    A::Message: 'static,
{
    let handle = spawn!(actor);
    for message in messages {
        handle
            .send(message)
            .await
            .unwrap_or_else(|_| panic!("the actor is closed"));
    }
    handle.join().await.expect("it ends by itself")
}

fn euros(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn main() {
    greenroom::run(async {
        let till = spawn!(Till::default(), name = "till");
        let price = till
            .ask(|reply| Order::Coffees(3, reply))
            .await
            .expect("the till replies");
        println!("3 coffees for {}", euros(price));
        till.tell(Order::Tea).expect("the till is open");
        let till = till.join().await.expect("it ends by itself");
        println!("{} in the till", euros(till.cents));

        struct Count(u32);
        impl Actor for Count {
            type Message = ();
            async fn handle(&mut self, (): (), _cx: &mut Context<()>) {
                self.0 += 1;
            }
        }
        assert_eq!(after(Count(0), [(), ()]).await.0, 2);
    });
}
