//! Programs with a bug that only some orders reveal, and fixed versions of them.
//!
//! The simulator finds each bug within a thousand seeds, and reports nothing for any fixed version.
//! There is one file for each bug. The two versions of a program differ only where the code depends
//! on the [`Version`](hunt::Version).

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
