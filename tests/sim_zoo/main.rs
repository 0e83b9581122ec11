//! Programs with a bug that only some orders show, and the same ones mended: the simulator finds
//! the bug of each within a thousand seeds, and nothing in any that is mended.
//!
//! A file a bug. A program and its mended twin share all but what depends on the
//! [`Version`](hunt::Version).

mod answer_first;
mod ask_cycle;
mod audit;
mod forgotten_reply;
mod full_mailboxes;
mod golden;
mod hunt;
mod late_answer;
mod lost_update;
mod order_of_senders;
mod retired_worker;
mod same_moment;
mod three_orders;
mod two_leaders;
mod two_orders;
mod yielding;
