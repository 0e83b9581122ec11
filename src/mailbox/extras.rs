//! Rarely needed state of a mailbox and of its actor, allocated on first use.
//!
//! The extras are behind one pointer. Once allocated, they live as long as the mailbox. What even
//! fewer actors have are hooks, behind one more pointer: functions for their messages, the text of a
//! panic, and incarnations.
//!
//! # Invariants
//! - EXTRAS-1: the part `mailbox` is accessed only under the mailbox's lock. The part `actor` is
//!   never borrowed mutably after creation, and lives as long as the mailbox. So it is with what
//!   the hooks have as `displacing`.
#![expect(unsafe_code, reason = "two halves with different rights; see EXTRAS-1")]

use std::any::Any;
use std::collections::VecDeque;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bound::Bound;
use super::line::Line;
use super::overflow::Displacing;
use super::urgent_queue::{IN_A_ROW, UrgentQueue};
use crate::blocks;
use crate::contain::KeptWaker;
use crate::sync::Mutex;
use crate::tracer::MessageSender;
use crate::waiters::Waiters;

pub(super) struct Extras<M> {
    mailbox: MailboxExtras<M>,
    actor: ActorExtras,
}

/// The part that belongs to the mailbox.
pub(super) struct MailboxExtras<M> {
    /// The bound; `None` if the mailbox is unbounded.
    pub(super) bound: Option<Bound<M>>,
    /// The waker for a message if `recv` waits in a task other than the actor's own.
    pub(super) receiver: Option<KeptWaker>,
    /// The number of permits, which are not used yet.
    pub(super) reserved: usize,
    pub(super) hooks: Option<Box<Hooks<M>>>,
}

/// The part that belongs to the actor; the mailbox only stores it.
pub(super) struct ActorExtras {
    /// The actor's name, one word in size; each `TaskInfo` of the actor shares it.
    pub(super) name: Option<Arc<Box<str>>>,
    /// The tasks that wait for the end of the actor.
    pub(super) ended: Waiters,
}

/// What the extras know of a mailbox and its actor, for a look.
#[derive(Default)]
pub(crate) struct KnownExtras {
    pub(crate) capacity: Option<usize>,
    /// The number of incarnations that have ended, and that of messages that were displaced.
    pub(crate) incarnations: u64,
    pub(crate) displaced: u64,
    /// The text of the last panic.
    pub(crate) panic: Option<Arc<str>>,
    /// The name of the actor's state.
    pub(crate) state: Option<&'static str>,
}

/// The options of an actor that its mailbox stores.
pub(crate) struct MailboxOptions<M> {
    pub(crate) capacity: Option<usize>,
    /// The name of the actor.
    pub(crate) name: Option<Box<str>>,
    pub(crate) hooks: Option<Box<Hooks<M>>>,
}

impl<M> MailboxOptions<M> {
    /// Returns whether a message replaces the waiting one of its key.
    pub(crate) fn conflates(&self) -> bool {
        let displacing = self
            .hooks
            .as_ref()
            .and_then(|hooks| hooks.displacing.as_ref());
        displacing.is_some_and(|displacing| displacing.conflation.is_some())
    }

    pub(crate) fn of(capacity: Option<usize>) -> Self {
        MailboxOptions {
            capacity,
            name: None,
            hooks: None,
        }
    }
}

/// Owner of the extras. Their memory comes from the block cache, since a join needs extras.
pub(super) struct ExtrasBox<M>(NonNull<Extras<M>>);

impl<M> ExtrasBox<M> {
    pub(super) fn new(options: MailboxOptions<M>) -> Self {
        let MailboxOptions {
            capacity,
            name,
            hooks,
        } = options;
        let extras = blocks::room::<Extras<M>>();
        // With a second queue messages are counted, although there is room for all.
        let has_urgent = hooks.as_ref().is_some_and(|hooks| hooks.urgent.is_some());
        let capacity = capacity.or(has_urgent.then_some(usize::MAX));
        let bound = capacity.map(|capacity| Bound {
            capacity,
            len: 0,
            line: Line::new(),
        });
        let mailbox = MailboxExtras {
            bound,
            receiver: None,
            reserved: 0,
            hooks,
        };
        let actor = ActorExtras {
            name: name.map(Arc::new),
            ended: Waiters::new(),
        };
        // SAFETY: the block has room for the extras.
        unsafe { extras.write(Extras { mailbox, actor }) };
        ExtrasBox(extras)
    }
}

impl<M> ExtrasBox<M> {
    /// Returns the mailbox's part.
    pub(super) fn mailbox(&mut self) -> &mut MailboxExtras<M> {
        // SAFETY: (EXTRAS-1) a caller with exclusive access to the box holds the lock.
        unsafe { &mut (*self.0.as_ptr()).mailbox }
    }

    pub(super) fn pointer(&self) -> NonNull<Extras<M>> {
        self.0
    }
}

impl<M> MailboxExtras<M> {
    /// Returns what a look shows.
    pub(super) fn known(&self) -> KnownExtras {
        let bound = self.bound.as_ref().map(|bound| bound.capacity);
        let known = KnownExtras {
            capacity: bound.filter(|&capacity| capacity != usize::MAX),
            ..KnownExtras::default()
        };
        let Some(hooks) = &self.hooks else {
            return known;
        };
        KnownExtras {
            incarnations: hooks.incarnations,
            displaced: hooks.displaced,
            panic: hooks.panic.clone(),
            state: hooks.traced.state,
            ..known
        }
    }
}

impl<M> Extras<M> {
    /// Returns the actor's part.
    ///
    /// # Safety
    /// The mailbox that owns the extras outlives `'a`.
    pub(super) unsafe fn actor<'a>(extras: NonNull<Self>) -> &'a ActorExtras {
        // SAFETY: by the caller's promise they are not freed; (EXTRAS-1) this part is never
        // borrowed mutably.
        unsafe { &(*extras.as_ptr()).actor }
    }
}

impl<M> Drop for ExtrasBox<M> {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; the box was never part of a mailbox, or its mailbox is being
        // dropped.
        unsafe { blocks::discard(self.0) };
    }
}

/// The options of an actor that concern its messages. They are `Send` and `Sync` whatever the
/// messages are.
pub(crate) struct HookOptions<M> {
    /// The function that shows a message in a trace.
    pub(crate) show: Option<fn(&M) -> String>,
    /// Whether no warning is given of long turns. The mailbox only stores it.
    pub(crate) has_long_turns: bool,
    /// The function for messages that are not handled.
    pub(crate) on_undelivered: Option<Mutex<OnUndelivered<M>>>,
    /// What is done with messages for which there is no room, if senders do not wait.
    pub(crate) displacing: Option<Displacing<M>>,
    /// The capacity for urgent messages, if they have a queue.
    pub(crate) urgent: Option<usize>,
    /// The maximum number of urgent messages in a row.
    pub(crate) urgent_in_a_row: Option<u32>,
    /// The link between the actor and its supervisor. The mailbox only stores it.
    pub(crate) bond: Option<AnyBond>,
}

/// No panic leaves it half changed.
pub(crate) type AnyBond = Arc<dyn Any + Send + Sync + RefUnwindSafe>;

/// A function that names a message in a trace. An empty name stands for that of the type.
pub(crate) type LabelFn<M> = fn(&M) -> &'static str;

pub(crate) type OnUndelivered<M> = Box<dyn FnMut(M) + Send>;

pub(crate) struct Hooks<M> {
    /// The function that shows a message in a trace.
    pub(super) show: Option<fn(&M) -> String>,
    pub(super) label: Option<LabelFn<M>>,
    pub(super) has_long_turns: bool,
    /// What a tracer of the user knows of the actor.
    pub(super) traced: Traced,
    pub(super) undelivered: Option<Arc<Mutex<Undelivered<M>>>>,
    pub(super) displacing: Option<Arc<Displacing<M>>>,
    pub(super) urgent: Option<Box<UrgentQueue<M>>>,
    /// The number of messages that were displaced.
    pub(super) displaced: u64,
    /// The text of the last panic: that with which the actor ended, or an incarnation of it.
    pub(super) panic: Option<Arc<str>>,
    pub(super) bond: Option<AnyBond>,
    pub(super) loans: Loans,
    /// The number of incarnations of the actor that have ended.
    pub(super) incarnations: u64,
}

/// What a tracer knows of an actor and its messages.
pub(super) struct Traced {
    /// The senders of the messages that were accepted and are not received yet, oldest first.
    pub(super) senders: VecDeque<MessageSender>,
    /// The sender of the last message that was received.
    pub(super) last: MessageSender,
    /// The name of the actor's state. That of a machine is also noted without a tracer.
    pub(super) state: Option<&'static str>,
    /// Whether the end of the actor was traced.
    pub(super) is_over: bool,
}

impl Traced {
    const NOTHING: Self = Traced {
        senders: VecDeque::new(),
        last: MessageSender::NONE,
        state: None,
        is_over: false,
    };
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
            has_long_turns: false,
            on_undelivered: None,
            displacing: None,
            urgent: None,
            urgent_in_a_row: None,
            bond: None,
        }
    }
}

impl<M> Hooks<M> {
    pub(crate) fn new(options: HookOptions<M>) -> Self {
        let function = options.on_undelivered.map(Mutex::into_inner);
        let in_a_row = options.urgent_in_a_row.unwrap_or(IN_A_ROW);
        let urgent = options.urgent;
        let urgent = urgent.map(|capacity| UrgentQueue::new(capacity, in_a_row));
        Hooks {
            show: options.show,
            label: None,
            has_long_turns: options.has_long_turns,
            traced: Traced::NOTHING,
            undelivered: function.map(Undelivered::new),
            displacing: options.displacing.map(Arc::new),
            urgent: urgent.map(Box::new),
            displaced: 0,
            panic: None,
            bond: options.bond,
            loans: Loans::default(),
            incarnations: 0,
        }
    }
}
