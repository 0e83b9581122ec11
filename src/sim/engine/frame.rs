//! A frame: a call of `block_on` on the stack of the simulation's thread.
#![expect(
    unsafe_code,
    reason = "a pointer to the stack; see FRAME-1 in frames.rs"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Context;

use super::script::TurnOrigin;
use crate::contain::KeptWaker;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{BlockingCall, Inner};

/// A call of `block_on`.
pub(super) struct SimFrame {
    pub(super) id: u64,
    pub(super) who: Who,
    pub(super) rank: u64,
    pub(super) origin: TurnOrigin,
    pub(super) state: FrameState,
    /// The data that the call has on the stack.
    pub(super) call: NonNull<FrameCall<'static>>,
}

// SAFETY: (FRAME-1) the pointer `call` is used on one thread only. All other fields are `Send`.
unsafe impl Send for SimFrame {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    /// Ready to be polled.
    Ready,
    /// Being polled.
    Polled,
    /// Woken while being polled.
    Again,
    /// Waiting, and not counted as activity.
    Idle,
    /// Done; its call can return.
    Done,
}

/// What a frame polls, and with which waker.
pub(super) struct FrameCall<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) waker: KeptWaker,
    pub(super) call: &'a mut dyn BlockingCall,
}

impl FrameCall<'_> {
    /// Polls the future; returns whether it is done.
    pub(super) fn poll(&mut self) -> bool {
        let context = ThreadContext::new(self.inner, Role::Outside);
        let _entered = context.enter();
        self.call
            .poll(&mut Context::from_waker(self.waker.as_waker()))
    }
}

impl SimFrame {
    /// Returns whether its call can return as soon as all calls above it have.
    pub(super) fn is_done(&self) -> bool {
        self.state == FrameState::Done
    }
}
