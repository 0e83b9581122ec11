//! An ask cycle: each of three actors asks the next one and waits for the reply.
//!
//! The orders ask the stock, the stock asks for a price, and the prices ask how many orders are
//! open. Each ask is harmless, unless all three overlap.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

enum Order {
    Place(u32),
    HowMany(Reply<usize>),
}

enum Stock {
    Reserve(u32, Reply<bool>),
    Delivery(u32),
}

enum Price {
    Of(u32, Reply<u32>),
    /// Reviews the price by the demand.
    Review(Address<Order>),
    Demand(usize),
}

async fn orders(mut cx: Context<Order>, stock: Address<Stock>) {
    let mut open = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Order::Place(article) => {
                let reserved = stock.ask(|reply| Stock::Reserve(article, reply)).await;
                open += usize::from(reserved == Ok(true));
            }
            Order::HowMany(reply) => reply.send(open),
        }
    }
}

/// Returns the value of everything that was delivered.
async fn stock(mut cx: Context<Stock>, prices: Address<Price>) -> u32 {
    let (mut shelf, mut worth) = (vec![1, 2, 3], 0);
    while let Some(message) = cx.recv().await {
        match message {
            Stock::Reserve(article, reply) => {
                let found = shelf.iter().position(|&other| other == article);
                reply.send(found.map(|at| shelf.swap_remove(at)).is_some());
            }
            Stock::Delivery(article) => {
                let price = prices.ask(|reply| Price::Of(article, reply)).await;
                worth += price.unwrap_or(0);
                shelf.push(article);
            }
        }
    }
    worth
}

async fn prices(mut cx: Context<Price>, version: Version) {
    let mut price = 100;
    while let Some(message) = cx.recv().await {
        match message {
            Price::Of(article, reply) => reply.send(price + article),
            Price::Review(orders) if version == Version::Buggy => {
                let open = orders.ask(Order::HowMany).await;
                price += open.unwrap_or(0) as u32;
            }
            // It continues to read meanwhile.
            Price::Review(orders) => cx.on_return(
                async move { orders.ask(Order::HowMany).await.unwrap_or(0) },
                |open| Price::Demand(open.unwrap_or(0)),
            ),
            Price::Demand(open) => price += open as u32,
        }
    }
}

pub async fn shop(version: Version) {
    let prices = spawn!(prices(_, version), name = "prices");
    let stock = spawn!(stock(_, prices.address()), name = "stock");
    let orders = spawn!(orders(_, stock.address()), name = "orders");
    let customer = {
        let orders = orders.address();
        greenroom::spawn(async move {
            for article in 1..=2 {
                orders.tell(Order::Place(article)).unwrap();
                greenroom::yield_now().await;
            }
        })
    };
    let truck = greenroom::spawn(async move {
        for article in 4..=5 {
            stock.tell(Stock::Delivery(article)).unwrap();
            greenroom::yield_now().await;
        }
    });
    let manager = {
        let orders = orders.address();
        greenroom::spawn(async move {
            // The manager looks at the orders first.
            orders.ask(Order::HowMany).await.unwrap();
            prices.tell(Price::Review(orders)).unwrap();
        })
    };
    customer.await;
    truck.await;
    manager.await;
    orders.ask(Order::HowMany).await.unwrap();
}

fn is_the_bug(problem: &RunProblem) -> bool {
    let cycles = [
        r#""orders" #3 → "stock" #2 → "prices" #1 → "orders" #3"#,
        r#""stock" #2 → "prices" #1 → "orders" #3 → "stock" #2"#,
        r#""prices" #1 → "orders" #3 → "stock" #2 → "prices" #1"#,
    ];
    matches!(problem, RunProblem::Deadlock(text) if cycles.contains(&text.as_str()))
}

hunts!(shop, is_the_bug);
