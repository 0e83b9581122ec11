//! The options of an actor for a bounded mailbox that has no room.

use std::hash::{BuildHasher, Hash, RandomState};

use super::ActorBuilder;
use crate::mailbox::{Conflation, Displacing, Overflow};

impl<M, A, Fut, On> ActorBuilder<M, A, Fut, On> {
    /// Sets what is done with messages for which the mailbox has no room. By default,
    /// [`Overflow::Wait`], a `send` waits.
    ///
    /// | | `Wait` | `Newest` | `Oldest` |
    /// |---|---|---|---|
    /// | [`tell`](crate::Address::tell) | is refused as full | is refused as full | displaces the oldest message |
    /// | [`send`](crate::Address::send) | waits | is refused as full | displaces the oldest message |
    /// | [`ask`](crate::Address::ask) | waits | ends as [`Overloaded`](crate::RefusalKind::Overloaded) | displaces the oldest message |
    /// | [`reserve`](crate::Address::reserve) | waits | is refused as full | displaces the oldest message |
    ///
    /// A message that is displaced goes to [`on_displaced`](ActorBuilder::on_displaced), and is
    /// counted in [`ActorStatus::displaced`](crate::ActorStatus::displaced). Its ask ends as
    /// `Overloaded`, too. It is not [undelivered](ActorBuilder::on_undelivered).
    ///
    /// Permits keep their room: if all of it is theirs, `Oldest` refuses as `Newest` does. A message
    /// that the actor has received is not displaced.
    ///
    /// The mailbox has to be [bounded](ActorBuilder::capacity).
    ///
    /// ```
    /// use greenroom::{Context, Overflow, actor};
    ///
    /// async fn last(mut cx: Context<u32>) -> Vec<u32> {
    ///     let mut all = Vec::new();
    ///     while let Some(reading) = cx.recv().await {
    ///         all.push(reading);
    ///     }
    ///     all
    /// }
    ///
    /// // Split, so that the actor runs when all were sent.
    /// let (address, actor) = actor(last).capacity(2).overflow(Overflow::Oldest).split();
    /// for reading in 1..=4 {
    ///     address.tell(reading).unwrap();
    /// }
    /// drop(address);
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), [3, 4]);
    /// ```
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.displacing_made().overflow = overflow;
        self
    }

    /// Sets a function for the messages that give way to newer ones, because of
    /// [`overflow`](ActorBuilder::overflow). By default they are dropped.
    ///
    /// It is called once with each such message, on the thread that sends the newer one, when that
    /// is in the mailbox. Senders may call it at the same time. A reply that it drops refuses its ask
    /// as [`Overloaded`](crate::RefusalKind::Overloaded).
    ///
    /// A panic of the function is reported to [`on_fault`](crate::Builder::on_fault). The sender and
    /// the actor continue. What the function sends to this actor may displace another message, for
    /// which it is called again.
    ///
    /// The mailbox has to be [bounded](ActorBuilder::capacity).
    ///
    /// ```
    /// use greenroom::{Context, Overflow, actor};
    /// use std::sync::mpsc;
    ///
    /// async fn sum(mut cx: Context<u32>) -> u32 {
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// let (lost, displaced) = mpsc::channel();
    /// let (address, actor) = actor(sum)
    ///     .capacity(1)
    ///     .overflow(Overflow::Oldest)
    ///     .on_displaced(move |number| lost.send(number).unwrap())
    ///     .split();
    /// for number in [1, 2, 40] {
    ///     address.tell(number).unwrap();
    /// }
    /// drop(address);
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), 40);
    /// assert_eq!(displaced.try_iter().sum::<u32>(), 3);
    /// ```
    pub fn on_displaced(mut self, function: impl Fn(M) + Send + Sync + 'static) -> Self {
        self.displacing_made().on_displaced = Some(Box::new(function));
        self
    }

    /// Lets a message replace the one of its key that waits in the mailbox, in its position.
    ///
    /// So the actor receives only the last message of each key, and that as early as the first one.
    /// A message whose key waits needs no room. Without room for another key,
    /// [`overflow`](ActorBuilder::overflow) decides. What is replaced is displaced, as there, and goes
    /// to [`on_displaced`](ActorBuilder::on_displaced).
    ///
    /// - Keys are the same if they hash alike: into 128 bits, under keys that are drawn at random. So
    ///   a key need not be compared or kept.
    /// - `key` is called on the thread of the sender, without a lock. Its panic reaches the sender, and
    ///   the message is dropped.
    /// - Through a [mapped](crate::Address::map) address a message takes a permit before its key is
    ///   known, and gives it up if it replaces another.
    /// - A [`send`](crate::Address::send) that waits gets a permit first, too. If it is then neither
    ///   polled nor dropped, it keeps the permit.
    ///
    /// The mailbox has to be [bounded](ActorBuilder::capacity).
    ///
    /// ```
    /// use greenroom::{Context, actor};
    ///
    /// struct Quote {
    ///     symbol: &'static str,
    ///     price: u32,
    /// }
    ///
    /// async fn prices(mut cx: Context<Quote>) -> Vec<u32> {
    ///     let mut prices = Vec::new();
    ///     while let Some(quote) = cx.recv().await {
    ///         prices.push(quote.price);
    ///     }
    ///     prices
    /// }
    ///
    /// let prices = actor(prices).capacity(10).conflate(|quote: &Quote| quote.symbol);
    /// let (address, actor) = prices.split();
    /// for (symbol, price) in [("tea", 3), ("oil", 80), ("tea", 4)] {
    ///     address.tell(Quote { symbol, price }).unwrap();
    /// }
    /// drop(address);
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), [4, 80]);
    /// ```
    pub fn conflate<K: Hash>(mut self, key: impl Fn(&M) -> K + Send + Sync + 'static) -> Self {
        let states = [RandomState::new(), RandomState::new()];
        let hash = move |message: &M| {
            let key = key(message);
            let [high, low] = states
                .each_ref()
                .map(|state| u128::from(state.hash_one(&key)));
            high << 64 | low
        };
        self.displacing_made().conflation = Some(Conflation::new(Box::new(hash)));
        self
    }

    fn displacing_made(&mut self) -> &mut Displacing<M> {
        self.hooks_made().displacing.get_or_insert_default()
    }
}
