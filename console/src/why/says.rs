//! The words for what is found.

use crate::model::{ActorFacts, ActorState, Model, WaitsOn};

/// Returns a duration in the unit that fits: `20 µs`, `1.2 s`, `3 min`.
pub fn duration(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..10_000_000 => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
        10_000_000..120_000_000 => format!("{} s", us / 1_000_000),
        120_000_000..7_200_000_000 => format!("{} min", us / 60_000_000),
        _ => format!("{} h", us / 3_600_000_000),
    }
}

/// Returns what an actor does: what it waits for, if it waits.
pub fn waits_text(model: &Model, actor: &ActorFacts) -> String {
    match actor.state {
        ActorState::Running => return "is in a turn".to_owned(),
        ActorState::Ready => return "is ready, and waits for a worker".to_owned(),
        ActorState::Waiting | ActorState::Unseen => {}
    }
    let message = actor.awaits_message.then(|| "a message".to_owned());
    let others = actor.waits.iter().map(|wait| wait_text(model, *wait));
    let all: Vec<_> = message.into_iter().chain(others).collect();
    match all.is_empty() {
        true => "waits".to_owned(),
        false => format!("waits for {}", all.join(" or ")),
    }
}

/// Returns what an actor waits for, without the verb.
pub(super) fn wait_text(model: &Model, wait: WaitsOn) -> String {
    match wait {
        WaitsOn::Answer(id) => format!("the answer of {}", model.label(id)),
        WaitsOn::Room(id) => format!("room in {}", model.label(id)),
        WaitsOn::End(id) => format!("the end of {}", model.label(id)),
        WaitsOn::Noted(what) => model.text(what).to_owned(),
        WaitsOn::Other if model.knows("waits") => "something that is not noted".to_owned(),
        WaitsOn::Other => "something (the program does not note waits)".to_owned(),
    }
}

/// Returns how long an actor has stood still, as an addition, or nothing.
pub fn still_text(model: &Model, actor: &ActorFacts) -> String {
    match model.still_ms(actor) {
        0..1_000 => String::new(),
        ms => format!(" for {}", duration(ms * 1_000)),
    }
}

/// Returns how often an actor was restarted, and its last fault, if that is known.
pub fn restarts_text(model: &Model, actor: &ActorFacts) -> String {
    let restarts = count(actor.restarts.into(), "restart");
    match model.text(actor.fault) {
        "" => restarts,
        fault => format!("{restarts}, the last after: {fault}"),
    }
}

/// Returns how long the turns of an actor are.
pub(super) fn turns_text(model: &Model, actor: &ActorFacts) -> String {
    let mean = model.mean_turn_us(actor);
    let longest = u64::from(actor.longest_us).max(mean);
    let sampled = if actor.is_measured { "" } else { " (sampled)" };
    format!(
        "up to {}, {} on average{sampled}",
        duration(longest),
        duration(mean)
    )
}

/// Returns how many messages wait in a mailbox.
pub(super) fn mailbox_text(mailbox: u32) -> String {
    match mailbox {
        1 => "1 message waits".to_owned(),
        waiting => format!("{waiting} messages wait"),
    }
}

/// Returns a number of things: `1 message`, `3 messages`.
pub(super) fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_has_two_or_three_digits() {
        let texts = [7, 1_234, 45_000, 1_250_000, 61_000_000, 600_000_000].map(duration);
        assert_eq!(
            texts,
            ["7 µs", "1.2 ms", "45 ms", "1.2 s", "61 s", "10 min"]
        );
        assert_eq!(duration(3 * 3_600_000_000), "3 h");
    }
}
