//! What every way to be an actor offers to the cases.

/// A way to be an actor. `Address` and `Context` are generic in the message, as they will have to
/// be; the actors are ordinary `async fn`s over them.
pub trait Way: Sized + 'static {
    /// What the table calls it.
    const NAME: &str;
    /// The writing end.
    type Address<M: Send + 'static>: Clone + Send + Sync + 'static;
    /// The reading end, owned by the actor.
    type Context<M: Send + 'static>: Send + 'static;

    /// Starts an actor; it ends when it returns, or when no address is left and it has read all.
    fn spawn<M, F>(start: impl FnOnce(Self::Context<M>) -> F) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static;

    /// Delivers a message, or gives it back if the actor is closed.
    fn tell<M: Send + 'static>(address: &Self::Address<M>, message: M) -> Result<(), M>;

    /// The next message; `None` when there will be none.
    fn recv<M: Send + 'static>(
        context: &mut Self::Context<M>,
    ) -> impl Future<Output = Option<M>> + Send;

    /// Runs one actor that is ready here; `false` if there is none.
    fn run_one() -> bool;

    /// Runs until nothing is ready here.
    fn run_all() {
        while Self::run_one() {}
    }
}
