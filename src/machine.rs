//! State machines: actors whose handling of a message depends on their state.
//!
//! Use a machine if messages may come too early and must wait for another state. Where a state only
//! changes how a message is handled, an ordinary [actor](crate::spawn!) with a `match` is shorter.
//!
//! A [`Machine`] handles each message in its current state, and returns what follows: a
//! [`Next`] state, the same one, or the end. A message that comes too early can be
//! [saved](Next::Save): it comes again, before any newer one, as soon as the state has changed.
//!
//! ```
//! use greenroom::machine::{Machine, Next};
//! use greenroom::{Context, Reply};
//!
//! /// A door that lets people in while it is open, and counts them.
//! #[derive(Default)]
//! struct Door {
//!     entered: u32,
//! }
//!
//! enum State {
//!     Closed,
//!     Open,
//! }
//!
//! enum Message {
//!     Open,
//!     Close,
//!     Enter(Reply<u32>),
//!     Demolish,
//! }
//!
//! impl Machine for Door {
//!     type State = State;
//!     type Message = Message;
//!     type Value = &'static str;
//!
//!     async fn on(
//!         &mut self,
//!         state: &State,
//!         message: Message,
//!         _cx: &mut Context<Message>,
//!     ) -> Next<Self> {
//!         match (state, message) {
//!             (State::Closed, Message::Open) => Next::To(State::Open),
//!             (State::Closed, Message::Enter(reply)) => Next::Save(Message::Enter(reply)),
//!             (State::Closed, Message::Demolish) => Next::Done("gone"),
//!             (State::Closed, ignored @ Message::Close) => Next::Ignore(ignored),
//!             (State::Open, Message::Close) => Next::To(State::Closed),
//!             (State::Open, Message::Enter(reply)) => {
//!                 self.entered += 1;
//!                 reply.send(self.entered);
//!                 Next::Stay
//!             }
//!             (State::Open, saved @ Message::Demolish) => Next::Save(saved),
//!             (State::Open, ignored @ Message::Open) => Next::Ignore(ignored),
//!         }
//!     }
//! }
//!
//! greenroom::run(async {
//!     let door = Door::default().into_builder(State::Closed).name("door").spawn();
//!     let first = door.request(Message::Enter); // sent when it is first polled
//!     let (first, ()) = futures::join!(first, async {
//!         door.tell(Message::Open).unwrap();
//!         door.tell(Message::Demolish).unwrap(); // saved until the door is closed
//!         door.tell(Message::Close).unwrap();
//!     });
//!     assert_eq!(first, Ok(1));
//!     let ended = door.join().await.unwrap();
//!     assert_eq!((ended.value, ended.machine.entered), (Some("gone"), 1));
//! });
//! ```
//!
//! A pair of state and message that is not decided does not compile, as long as the `match` has no
//! arm for all others:
//!
//! ```compile_fail,E0004
//! # use greenroom::machine::{Machine, Next};
//! # use greenroom::Context;
//! # struct Lamp;
//! # enum State { Off, On }
//! # enum Message { Push, Break }
//! # impl Machine for Lamp {
//! #     type State = State;
//! #     type Message = Message;
//! #     type Value = ();
//! #     async fn on(
//! #         &mut self,
//! #         state: &State,
//! #         message: Message,
//! #         _cx: &mut Context<Message>,
//! #     ) -> Next<Self> {
//! match (state, message) {
//!     (State::Off, Message::Push) => Next::To(State::On),
//!     (State::On, Message::Push) => Next::To(State::Off),
//!     (State::On, Message::Break) => Next::Done(()),
//!     // (State::Off, Message::Break) is missing
//! }
//! #     }
//! # }
//! ```
//!
//! What a handler returns is a [`Next`], so one that returns no state does not compile:
//!
//! ```compile_fail,E0308
//! # use greenroom::machine::{Machine, Next};
//! # use greenroom::Context;
//! # struct Lamp;
//! # enum State { Off, On }
//! # struct Push;
//! # impl Machine for Lamp {
//! #     type State = State;
//! #     type Message = Push;
//! #     type Value = ();
//! #     async fn on(&mut self, state: &State, _push: Push, _cx: &mut Context<Push>) -> Next<Self> {
//! match state {
//!     State::Off => Next::To(State::On),
//!     State::On => State::Off, // `Next::To` is missing
//! }
//! #     }
//! # }
//! ```
//!
//! A pair that is both handled and saved has two arms, of which the first one decides. It compiles,
//! but the compiler warns of the second one, which is never reached. With that lint denied it is an
//! error:
//!
//! ```compile_fail
//! #![deny(unreachable_patterns)]
//! # use greenroom::machine::{Machine, Next};
//! # use greenroom::Context;
//! # struct Lamp;
//! # enum State { Off, On }
//! # struct Push;
//! # impl Machine for Lamp {
//! #     type State = State;
//! #     type Message = Push;
//! #     type Value = ();
//! #     async fn on(&mut self, state: &State, push: Push, _cx: &mut Context<Push>) -> Next<Self> {
//! match (state, push) {
//!     (State::Off, Push) => Next::To(State::On),
//!     (State::On, Push) => Next::To(State::Off),
//!     (State::Off, early @ Push) => Next::Save(early), // is handled above
//! }
//! #     }
//! # }
//! ```

mod definition;
mod intake;

pub use definition::{Ended, Machine, Next};
