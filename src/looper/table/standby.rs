//! Whether one of the lanes that work stands by.
//!
//! With short tasks two lanes mostly fetch the memory of jobs from each other's core, so that one
//! of them alone ends more tasks. That depends on the tasks and on the machine, so it is tried: a
//! lane stands by as long as the others end at least as many tasks in a time as all did before.
//! Otherwise it takes part again, and the next trial comes after twice as many turns.

use std::time::Duration;

use crate::instant::Instant;

/// How long a lane stands by before it looks how fast the others are. A task that is ready may wait
/// so long for a lane if the others are suddenly stuck.
pub(in crate::looper) const WATCH: Duration = Duration::from_micros(50);

/// The most turns of lanes between two trials.
const TURNS_MAX: u32 = 128;

pub(super) struct Standby {
    /// The lane that stands by.
    lane: Option<usize>,
    /// The number of turns of tasks that have ended, which wraps around.
    ended: u32,
    /// Since when as many lanes work as now, and `ended` at that moment. `None`: the end of the
    /// next turn of a lane is that moment.
    since: Option<(Instant, u32)>,
    /// How many turns of tasks had ended in how much time before the lane stood by.
    before: (u32, Duration),
    /// The number of turns of lanes before the next trial.
    left: u32,
    /// The number of these after a trial that fails.
    pause: u32,
}

impl Standby {
    pub(super) fn new() -> Self {
        Standby {
            lane: None,
            ended: 0,
            since: None,
            before: (0, Duration::ZERO),
            left: 1,
            pause: 1,
        }
    }

    /// Returns whether a lane stands by.
    pub(super) fn has_lane(&self) -> bool {
        self.lane.is_some()
    }

    /// Counts the end of a turn of a task.
    pub(super) fn task_ended(&mut self) {
        self.ended = self.ended.wrapping_add(1);
    }

    /// Notes that another number of lanes works from now on.
    pub(super) fn lanes_changed(&mut self) {
        if !self.has_lane() {
            self.since = None;
        }
    }

    /// Notes the end of a turn of a lane that is not the only one. Returns whether that one stands
    /// by from now on. No other one does.
    pub(super) fn turn_ended(&mut self, lane: usize, now: Instant) -> bool {
        let Some((since, ended)) = self.since else {
            self.since = Some((now, self.ended));
            return false;
        };
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return false;
        }
        self.before = (self.ended.wrapping_sub(ended), now - since);
        self.since = Some((now, self.ended));
        self.lane = Some(lane);
        true
    }

    /// Returns whether the lane goes on standing by, since the others are as fast without it.
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        let (since, ended) = self.since.unwrap_or((now, self.ended));
        let (count, time) = (self.ended.wrapping_sub(ended), now - since);
        let (count_before, time_before) = self.before;
        let goes_on = u128::from(count) * time_before.as_nanos()
            >= u128::from(count_before) * time.as_nanos();
        if goes_on {
            self.since = Some((now, self.ended));
            self.pause = 1;
        } else {
            self.lane = None;
            self.since = None;
            self.left = self.pause;
            self.pause = TURNS_MAX.min(self.pause * 2);
        }
        goes_on
    }

    /// Notes that this lane is gone.
    pub(super) fn lost(&mut self, lane: usize) {
        self.lane.take_if(|standby| *standby == lane);
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::time::Duration;

    use crate::instant::Instant;
    use crate::looper::table::standby::{Standby, TURNS_MAX};

    /// Lets two lanes end so many tasks in as many microseconds, and the second one stand by.
    fn trial(standby: &mut Standby, now: &mut Instant, tasks: u32) {
        loop {
            assert!(!standby.has_lane());
            (0..tasks).for_each(|_| standby.task_ended());
            *now = *now + Duration::from_micros(u64::from(tasks));
            if standby.turn_ended(1, *now) {
                return;
            }
        }
    }

    /// Lets the other lane end so many tasks in 50 microseconds.
    fn watch(standby: &mut Standby, now: &mut Instant, tasks: u32) -> bool {
        (0..tasks).for_each(|_| standby.task_ended());
        *now = *now + Duration::from_micros(50);
        standby.goes_on(*now)
    }

    #[test]
    fn a_lane_stands_by_as_long_as_the_others_are_as_fast_without_it() {
        let (mut standby, mut now) = (Standby::new(), Instant::now());
        trial(&mut standby, &mut now, 40);
        assert!(watch(&mut standby, &mut now, 50));
        assert!(watch(&mut standby, &mut now, 50));
        assert!(!watch(&mut standby, &mut now, 49));
        assert!(!standby.has_lane());
    }

    #[test]
    fn a_lane_takes_part_if_the_others_are_stuck_from_the_beginning() {
        let (mut standby, mut now) = (Standby::new(), Instant::now());
        trial(&mut standby, &mut now, 1);
        assert!(!watch(&mut standby, &mut now, 0));
    }

    #[test]
    fn a_trial_that_fails_comes_again_after_twice_as_many_turns() {
        let (mut standby, mut now) = (Standby::new(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let before = standby.ended;
            trial(&mut standby, &mut now, 1);
            pauses.push(standby.ended - before);
            assert!(!watch(&mut standby, &mut now, 0));
        }
        // The first turn of each only begins the measurement.
        assert_eq!(pauses, [2, 2, 3, 5, 9, 17, 33, 65, 129, TURNS_MAX + 1]);
        trial(&mut standby, &mut now, 1);
        assert!(watch(&mut standby, &mut now, 50));
        assert!(!watch(&mut standby, &mut now, 49));
        let before = standby.ended;
        trial(&mut standby, &mut now, 1);
        assert_eq!(standby.ended - before, 2);
    }

    #[test]
    fn a_change_of_the_lanes_begins_the_measurement_anew() {
        let (mut standby, mut now) = (Standby::new(), Instant::now());
        assert!(!standby.turn_ended(0, now));
        standby.lanes_changed();
        assert!(!standby.turn_ended(0, now));
        trial(&mut standby, &mut now, 1);
        standby.lanes_changed();
        assert!(watch(&mut standby, &mut now, 50));
        standby.lost(0);
        assert!(standby.has_lane());
        standby.lost(1);
        assert!(!standby.has_lane());
    }
}
