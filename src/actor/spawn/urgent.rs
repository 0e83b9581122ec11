//! The options of an actor for urgent messages.

use super::ActorBuilder;
use crate::error::SpawnProblem;
use crate::mailbox::HookOptions;

impl<M, A, Fut, On> ActorBuilder<M, A, Fut, On> {
    /// Gives the actor a second queue, for urgent messages: it takes at least 1, and this many.
    ///
    /// [`Address::urgent`](crate::Address::urgent) returns an address for it. The actor receives one
    /// message at a time, and not a batch. So an urgent message comes before all plain ones that it
    /// has not received yet. By default there is no such queue, and an actor without it pays nothing
    /// for it.
    ///
    /// The [guide](crate::docs::guide#control-messages) has the order of messages and an example.
    pub fn urgent(mut self, messages: usize) -> Self {
        self.hooks_made().urgent = Some(messages);
        self
    }

    /// Sets how many urgent messages the actor receives in a row while plain ones wait: at least 1, by
    /// default 16.
    ///
    /// After them it receives a plain one. So a flood of urgent messages slows plain ones down, and
    /// does not stop them. The actor has to have the option [`urgent`](ActorBuilder::urgent).
    ///
    /// ```
    /// use greenroom::{Context, actor};
    ///
    /// async fn collect(mut cx: Context<&'static str>) -> Vec<&'static str> {
    ///     let mut all = Vec::new();
    ///     while let Some(text) = cx.recv().await {
    ///         all.push(text);
    ///     }
    ///     all
    /// }
    ///
    /// let (address, all) = actor(collect).urgent(8).urgent_in_a_row(2).split();
    /// let urgent = address.urgent().unwrap();
    /// for _ in 0..2 {
    ///     address.tell("plain").unwrap();
    /// }
    /// for _ in 0..3 {
    ///     urgent.tell("urgent").unwrap();
    /// }
    /// drop((address, urgent));
    /// let expected = ["urgent", "urgent", "plain", "urgent", "plain"];
    /// assert_eq!(futures::executor::block_on(all).unwrap(), expected);
    /// ```
    pub fn urgent_in_a_row(mut self, messages: u32) -> Self {
        self.hooks_made().urgent_in_a_row = Some(messages);
        self
    }
}

impl<M> HookOptions<M> {
    /// Returns what is wrong with the options of a mailbox of this capacity.
    pub(super) fn problem(&self, capacity: Option<usize>) -> Option<SpawnProblem> {
        match (self.urgent, self.urgent_in_a_row) {
            (Some(0), _) => Some(SpawnProblem::ZeroCapacity),
            (_, Some(0)) | (None, Some(_)) => Some(SpawnProblem::UrgentInARow),
            _ if capacity.is_none() && self.displacing.is_some() => Some(SpawnProblem::NoCapacity),
            _ => None,
        }
    }
}
