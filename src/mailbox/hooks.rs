//! What few actors have: functions for their messages, the text of a panic, and incarnations.
//!
//! The mailbox stores it behind one pointer, so that it costs other actors nothing.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use crate::contain::KeptWaker;
use crate::sync::Mutex;

/// The options of an actor that concern its messages. They are `Send` and `Sync` whatever the
/// messages are.
pub(crate) struct HookOptions<M> {
    /// The function that shows a message in a trace.
    pub(crate) show: Option<fn(&M) -> String>,
    /// The function that names a message in a trace.
    pub(crate) label: Option<LabelFn<M>>,
    /// The function for messages that are not handled.
    pub(crate) on_undelivered: Option<Mutex<OnUndelivered<M>>>,
    /// The link between the actor and its supervisor. The mailbox only stores it.
    pub(crate) bond: Option<AnyBond>,
}

/// No panic leaves it half changed.
pub(crate) type AnyBond = Arc<dyn Any + Send + Sync + RefUnwindSafe>;

pub(crate) type LabelFn<M> = fn(&M) -> &'static str;

pub(crate) type OnUndelivered<M> = Box<dyn FnMut(M) + Send>;

pub(crate) struct Hooks<M> {
    /// The function that shows a message in a trace.
    pub(super) show: Option<fn(&M) -> String>,
    pub(super) label: Option<LabelFn<M>>,
    /// What a tracer of the user knows of the actor.
    pub(super) traced: Traced,
    pub(super) undelivered: Option<Arc<Mutex<Undelivered<M>>>>,
    /// The text of the panic with which the actor ended.
    pub(super) panic: Option<Arc<str>>,
    pub(super) bond: Option<AnyBond>,
    pub(super) loans: Loans,
    /// The number of incarnations of the actor that have ended.
    pub(super) incarnations: u64,
}

/// What a tracer knows of an actor and its messages.
#[derive(Default)]
pub(super) struct Traced {
    /// The senders of the messages that were accepted and are not received yet, oldest first.
    pub(super) senders: VecDeque<u64>,
    /// The sender of the last message that was received.
    pub(super) last: u64,
    /// The name of the actor's state.
    pub(super) state: Option<&'static str>,
    /// Whether the end of the actor was traced.
    pub(super) is_over: bool,
}

/// Messages that are not handled, and the function for them.
pub(super) struct Undelivered<M> {
    /// `None` while a thread calls the function, and once no message can follow.
    pub(super) function: Option<OnUndelivered<M>>,
    pub(super) messages: VecDeque<M>,
    /// Whether the actor has ended, so that the function may be called.
    pub(super) is_over: bool,
    /// Whether a context may still give messages back.
    pub(super) has_context: bool,
}

impl<M> Undelivered<M> {
    pub(super) fn new(function: OnUndelivered<M>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Undelivered {
            function: Some(function),
            messages: VecDeque::new(),
            is_over: false,
            has_context: true,
        }))
    }
}

/// The loans of one context, but for the first one.
#[derive(Default)]
pub(super) struct Loans {
    /// The lender of the first loan, if it waits for the context.
    pub(super) first: Option<KeptWaker>,
    /// The keys of the other loans, oldest first, with their lenders.
    pub(super) others: Vec<(u32, Option<KeptWaker>)>,
    /// The last key.
    pub(super) last: u32,
}

impl<M> Default for HookOptions<M> {
    fn default() -> Self {
        HookOptions {
            show: None,
            label: None,
            on_undelivered: None,
            bond: None,
        }
    }
}

impl<M> Hooks<M> {
    pub(crate) fn new(options: HookOptions<M>) -> Self {
        let function = options.on_undelivered.map(Mutex::into_inner);
        Hooks {
            show: options.show,
            label: options.label,
            traced: Traced::default(),
            undelivered: function.map(Undelivered::new),
            panic: None,
            bond: options.bond,
            loans: Loans::default(),
            incarnations: 0,
        }
    }
}
