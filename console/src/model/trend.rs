//! How an actor has fared in the last refreshes, in a few bytes an actor.
//!
//! An actor that has not changed is not sent, so what is missing is filled in when it is sent again, or
//! looked at.

/// What an actor does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ActorState {
    /// It was not known yet.
    #[default]
    Unseen,
    /// It waits for a message, or for something else.
    Waiting,
    /// It is ready, and waits for a worker.
    Ready,
    /// It is in a turn.
    Running,
}

impl ActorState {
    /// All states, in the order of their numbers.
    const ALL: [ActorState; 4] = [
        ActorState::Unseen,
        ActorState::Waiting,
        ActorState::Ready,
        ActorState::Running,
    ];

    /// Returns the state of a word of the protocol. An unknown word is that of a later version.
    pub fn of(word: &str) -> Self {
        let found = Self::ALL.into_iter().find(|state| state.word() == word);
        found.unwrap_or(ActorState::Waiting)
    }

    /// Returns the word of the protocol.
    pub fn word(self) -> &'static str {
        ["", "waiting", "ready", "running"][self as usize]
    }
}

/// The number of refreshes of which the states are kept.
pub const TRAIL: u32 = 32;

/// The states of an actor in the last refreshes: two bits each, the newest lowest.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateTrail {
    bits: u64,
    /// The refresh of the newest.
    tick: u32,
}

impl StateTrail {
    /// Notes the state in this refresh. Until then the last one has lasted.
    pub fn note(&mut self, tick: u32, state: ActorState) {
        self.bits = self.filled(tick) & !3 | state as u64;
        self.tick = tick;
    }

    /// Returns the states of the last refreshes, the oldest first.
    pub fn states(&self, tick: u32) -> impl Iterator<Item = ActorState> + use<> {
        let bits = self.filled(tick);
        (0..TRAIL)
            .rev()
            .map(move |at| ActorState::ALL[(bits >> (2 * at) & 3) as usize])
    }

    /// Returns the bits as they are in a later refresh: the newest state has lasted.
    fn filled(&self, tick: u32) -> u64 {
        let passed = tick.saturating_sub(self.tick).min(TRAIL);
        let last = self.bits & 3;
        (0..passed).fold(self.bits, |bits, _| bits << 2 | last)
    }
}

/// The refreshes of a window, whose least fill of a mailbox is kept.
const WINDOW: u32 = 2;

/// A mailbox with fewer messages does not grow: it varies.
const GROWN_MIN: u32 = 16;

/// The windows that a trend looks at: the present one, and those before it.
const WINDOWS: usize = 3;

/// How many refreshes back a trend reaches, at most.
pub(super) const REACH: usize = WINDOW as usize * WINDOWS;

/// The least fill of a mailbox in the last windows of refreshes, and the messages handled in them. A
/// mailbox that is emptied now and then has a low one, however full it was meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trend {
    /// The refresh in which it has begun.
    begun: u32,
    window: u32,
    /// Of this window, and of those before.
    lows: [u32; WINDOWS],
    handled: [u32; WINDOWS],
}

impl Trend {
    /// Begins with a fill.
    pub fn new(tick: u32, mailbox: u32) -> Self {
        Trend {
            begun: tick,
            window: tick / WINDOW,
            lows: [mailbox; WINDOWS],
            handled: [0; WINDOWS],
        }
    }

    /// Moves on to a window. Until then the fill was this one, and nothing was handled.
    fn move_to(&mut self, window: u32, fill: u32) {
        let passed = (window.saturating_sub(self.window) as usize).min(WINDOWS);
        self.window = window;
        self.lows.rotate_right(passed);
        self.lows[..passed].fill(fill);
        self.handled.rotate_right(passed);
        self.handled[..passed].fill(0);
    }

    /// Notes the fill in this refresh, and the messages handled since the note before. Until then the
    /// fill was `previous`.
    pub fn note(&mut self, tick: u32, previous: u32, mailbox: u32, handled: u32) {
        let window = tick / WINDOW;
        if window != self.window {
            self.move_to(window, previous);
            self.lows[0] = mailbox;
        }
        self.lows[0] = self.lows[0].min(mailbox);
        self.handled[0] = self.handled[0].saturating_add(handled);
    }

    /// Returns by how much the least fill has risen each refresh, if it rises.
    pub fn growth(&self, tick: u32) -> Option<u32> {
        let [low, before, first] = self.lows;
        let is_fresh = (tick / WINDOW).saturating_sub(self.window) <= 1;
        let is_grown = is_fresh && first < before && before < low && before >= GROWN_MIN;
        is_grown.then(|| (low - first).div_ceil(2 * WINDOW))
    }

    /// Returns the messages handled in the last windows, and since which refresh these are counted. `None`
    /// if none was handled, but the mailbox was empty in this window or in the one before.
    pub fn handled(mut self, tick: u32, mailbox: u32) -> Option<(u64, u32)> {
        let window = tick / WINDOW;
        self.move_to(window, mailbox);
        let messages = self.handled.into_iter().map(u64::from).sum();
        let begin = (window + 1).saturating_sub(WINDOWS as u32) * WINDOW;
        let since = begin.saturating_sub(1).max(self.begun);
        let is_known = messages > 0 || self.lows[..2].iter().all(|low| *low > 0);
        is_known.then_some((messages, since))
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorState, StateTrail, Trend};

    #[test]
    fn a_state_lasts_until_the_next_one_is_known() {
        let mut trail = StateTrail::default();
        trail.note(5, ActorState::Running);
        trail.note(8, ActorState::Waiting);
        let states: Vec<_> = trail.states(9).collect();
        let (before, last) = states.split_at(27);
        assert!(before.iter().all(|state| *state == ActorState::Unseen));
        use ActorState::{Running, Waiting};
        assert_eq!(last, [Running, Running, Running, Waiting, Waiting]);
        assert!(trail.states(1000).all(|state| state == Waiting));
    }

    #[test]
    fn a_mailbox_that_never_empties_grows() {
        let mut trend = Trend::new(0, 0);
        for tick in 1..8 {
            trend.note(tick, (tick - 1) * 10, tick * 10, 1);
        }
        assert_eq!(trend.growth(7), Some(10));
        assert_eq!(trend.growth(12), None, "it has not changed since");
    }

    #[test]
    fn a_mailbox_that_is_emptied_now_and_then_does_not_grow() {
        let mut trend = Trend::new(0, 0);
        let fills = [900, 0, 1000, 5, 1100, 0, 1200, 3, 1300];
        for (tick, pair) in fills.windows(2).enumerate() {
            trend.note(tick as u32 + 1, pair[0], pair[1], 1);
            assert_eq!(trend.growth(tick as u32 + 1), None);
        }
    }

    #[test]
    fn messages_are_counted_in_the_last_windows_only() {
        let mut trend = Trend::new(1, 3);
        assert_eq!(trend.handled(1, 3), Some((0, 1)));
        for tick in 2..10 {
            trend.note(tick, 3, 3, 10);
        }
        // In refreshes 4 to 9.
        assert_eq!(trend.handled(9, 3), Some((60, 3)));
        assert_eq!(trend.handled(10, 3), Some((40, 5)));
        assert_eq!(trend.handled(14, 3), Some((0, 9)));
        trend.note(15, 3, 3, 7);
        assert_eq!(trend.handled(15, 3), Some((7, 9)));
    }

    #[test]
    fn a_message_that_has_just_come_is_not_one_that_none_handles() {
        let mut trend = Trend::new(0, 0);
        trend.note(8, 0, 1, 0);
        let known = (8..13).map(|tick| trend.handled(tick, 1).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [false, false, true, true, true]);
    }
}
