//! The interface of a cell, which all cases use.

/// A way to implement actors. `Address` and `Context` are generic over the message; the actors are
/// ordinary `async fn`s.
pub trait Way: Sized + 'static {
    /// The name in the table.
    const NAME: &str;
    /// The address of an actor.
    type Address<M: Send + 'static>: Clone + Send + Sync + 'static;
    /// The context, which the actor owns.
    type Context<M: Send + 'static>: Send + 'static;

    /// Spawns an actor. It ends when it returns, or when no address is left and it has read all
    /// messages.
    fn spawn<M, F>(start: impl FnOnce(Self::Context<M>) -> F) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static;

    /// Delivers a message, or returns it if the actor is closed.
    fn tell<M: Send + 'static>(address: &Self::Address<M>, message: M) -> Result<(), M>;

    /// Returns the next message, or `None` when there will be none.
    fn recv<M: Send + 'static>(
        context: &mut Self::Context<M>,
    ) -> impl Future<Output = Option<M>> + Send;

    /// Runs one actor that is ready on this thread; returns `false` if there is none.
    fn run_one() -> bool;

    /// Runs until no actor is ready on this thread.
    fn run_all() {
        while Self::run_one() {}
    }
}
