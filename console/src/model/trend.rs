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
    Idles,
    /// It is ready, and waits for a worker.
    Ready,
    /// It is in a turn.
    Runs,
}

impl ActorState {
    /// Returns the state of a word of the protocol. An unknown word is that of a later version.
    pub fn of(word: &str) -> Self {
        match word {
            "running" => ActorState::Runs,
            "ready" => ActorState::Ready,
            _ => ActorState::Idles,
        }
    }

    /// Returns the word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            ActorState::Unseen => "",
            ActorState::Idles => "waiting",
            ActorState::Ready => "ready",
            ActorState::Runs => "running",
        }
    }

    fn of_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => ActorState::Unseen,
            1 => ActorState::Idles,
            2 => ActorState::Ready,
            _ => ActorState::Runs,
        }
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
            .map(move |at| ActorState::of_bits(bits >> (2 * at)))
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

/// The least fill of a mailbox in the last windows of refreshes. A mailbox that is emptied now and then
/// has a low one, however full it was meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trend {
    window: u32,
    /// The least fill of this window, and of the two before.
    low: u32,
    before: u32,
    first: u32,
}

impl Trend {
    /// Begins with a fill.
    pub fn new(tick: u32, mailbox: u32) -> Self {
        Trend {
            window: tick / WINDOW,
            low: mailbox,
            before: mailbox,
            first: mailbox,
        }
    }

    /// Notes the fill in this refresh. Until then it was `previous`.
    pub fn note(&mut self, tick: u32, previous: u32, mailbox: u32) {
        let window = tick / WINDOW;
        match window.saturating_sub(self.window) {
            0 => {
                self.low = self.low.min(mailbox);
                return;
            }
            1 => (self.first, self.before) = (self.before, self.low),
            2 => (self.first, self.before) = (self.low, previous),
            _ => (self.first, self.before) = (previous, previous),
        }
        self.window = window;
        self.low = mailbox;
    }

    /// Returns by how much the least fill has risen each refresh, if it rises.
    pub fn growth(&self, tick: u32) -> Option<u32> {
        let is_fresh = (tick / WINDOW).saturating_sub(self.window) <= 1;
        let rises = self.first < self.before && self.before < self.low;
        let is_grown = is_fresh && rises && self.before >= GROWN_MIN;
        is_grown.then(|| (self.low - self.first).div_ceil(2 * WINDOW))
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorState, StateTrail, Trend};

    #[test]
    fn a_state_lasts_until_the_next_one_is_known() {
        let mut trail = StateTrail::default();
        trail.note(5, ActorState::Runs);
        trail.note(8, ActorState::Idles);
        let states: Vec<_> = trail.states(9).collect();
        let (before, last) = states.split_at(27);
        assert!(before.iter().all(|state| *state == ActorState::Unseen));
        use ActorState::{Idles, Runs};
        assert_eq!(last, [Runs, Runs, Runs, Idles, Idles]);
        assert!(trail.states(1000).all(|state| state == Idles));
    }

    #[test]
    fn a_mailbox_that_never_empties_grows() {
        let mut trend = Trend::new(0, 0);
        for tick in 1..8 {
            trend.note(tick, (tick - 1) * 10, tick * 10);
        }
        assert_eq!(trend.growth(7), Some(10));
        assert_eq!(trend.growth(12), None, "it has not changed since");
    }

    #[test]
    fn a_mailbox_that_is_emptied_now_and_then_does_not_grow() {
        let mut trend = Trend::new(0, 0);
        let fills = [900, 0, 1000, 5, 1100, 0, 1200, 3, 1300];
        for (tick, pair) in fills.windows(2).enumerate() {
            trend.note(tick as u32 + 1, pair[0], pair[1]);
            assert_eq!(trend.growth(tick as u32 + 1), None);
        }
    }
}
