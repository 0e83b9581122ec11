//! A call of `block_on` in a simulation: a frame on the stack of its thread.
#![expect(
    unsafe_code,
    reason = "a pointer to the stack; see FRAME-1 in frames.rs"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::script::Origin;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{BlockingCall, Inner};

/// A call of `block_on`.
pub(super) struct Frame {
    pub(super) id: u64,
    pub(super) who: Who,
    pub(super) rank: u64,
    pub(super) origin: Origin,
    pub(super) state: FrameState,
    pub(super) call: Pointer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    /// To be polled.
    Ready,
    /// Being polled.
    Polled,
    /// Woken while it is polled.
    Again,
    /// It waits, and is not counted.
    Idle,
    /// Its call can come back.
    Done,
}

/// What a call has on the stack.
#[derive(Clone, Copy)]
pub(super) struct Pointer(pub(super) NonNull<FrameCall<'static>>);

// SAFETY: (FRAME-1) it is used on one thread only.
unsafe impl Send for Pointer {}

/// What a frame polls.
pub(super) struct FrameCall<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) waker: Waker,
    pub(super) call: &'a mut dyn BlockingCall,
}

impl FrameCall<'_> {
    /// Polls the future; returns whether it is done.
    pub(super) fn poll(&mut self) -> bool {
        let context = ThreadContext::new(self.inner, Role::Outside);
        let _entered = context.enter();
        self.call.poll(&mut Context::from_waker(&self.waker))
    }
}

impl Frame {
    /// Whether its call could come back but for those above it.
    pub(super) fn is_done(&self) -> bool {
        self.state == FrameState::Done
    }
}
