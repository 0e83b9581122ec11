//! Styles, and texts that all views draw.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::pane::Pane;
use crate::input::ViewName;
use crate::model::{ActorState, Model};
use crate::why::{LinkKind, Trouble, duration};

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().fg(Color::DarkGray);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(super) const HEAD: Style = Style::new().fg(Color::Black).bg(Color::Green);
pub(super) const ACCENT: Style = Style::new().fg(Color::Black).bg(Color::Cyan);
pub(super) const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// The views that have a number, with their names.
pub(super) const TABS: [(ViewName, &str); 5] = [
    (ViewName::Runtime, "Runtime"),
    (ViewName::Actors, "Actors"),
    (ViewName::Why, "Why"),
    (ViewName::Services, "Services"),
    (ViewName::Log, "Log"),
];

/// How the connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkStatus {
    /// It is being made.
    Connecting,
    /// Lines come.
    Live,
    /// It is there, but nothing has come for so many seconds.
    Silent(u64),
    /// Lines of a record come.
    Replaying,
    /// All lines have come, or the program has ended, for this reason.
    Ended(String),
    /// It is lost, for this reason, and will be tried again in so many seconds.
    Lost(String, u64),
    /// Nothing is read meanwhile.
    Paused,
}

impl LinkStatus {
    /// Returns what the screen says.
    pub fn text(&self) -> String {
        match self {
            LinkStatus::Connecting => "connecting".to_owned(),
            LinkStatus::Live => "live".to_owned(),
            LinkStatus::Silent(seconds) => format!("silent for {seconds} s"),
            LinkStatus::Replaying => "record".to_owned(),
            LinkStatus::Ended(why) => format!("ended: {why}"),
            LinkStatus::Lost(why, seconds) => format!("lost: {why}; again in {seconds} s"),
            LinkStatus::Paused => "paused".to_owned(),
        }
    }
}

/// Draws the first line of the screen: what is looked at, and how the connection is.
pub(super) fn head(model: &Model, origin: &str, status: &LinkStatus, pane: &mut Pane<'_>) {
    use LinkStatus::{Ended, Lost, Silent};
    pane.fill(0, HEAD);
    let state = format!(" {} ", status.text());
    let is_alarm = matches!(status, Lost(..) | Ended(_) | Silent(_));
    let style = if is_alarm {
        ALARM.bg(Color::Black)
    } else {
        HEAD
    };
    let mut text = format!(" {origin}");
    if let Some(program) = model.program() {
        text += &format!("  pid {}  greenroom {}", program.pid, program.greenroom);
        text += &format!("  up {}", duration(model.figures().uptime_ms * 1_000));
    }
    let width = state.chars().count() as u16;
    // What went wrong matters more than where it was.
    let begin = pane.width().saturating_sub(width).max(pane.width() / 4);
    pane.within(0, 0, begin, 1).put(0, 0, text, HEAD);
    pane.put(begin, 0, state, style);
}

/// Takes the colours away. What has a background is reversed instead.
pub(super) fn drop_colors(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.bg != Color::Reset {
            cell.modifier.insert(Modifier::REVERSED);
        }
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

/// Returns what may be done in a view.
pub(super) fn subtitle(view: ViewName) -> &'static str {
    match view {
        ViewName::Runtime | ViewName::Log => "Enter opens",
        ViewName::Actors => "Enter opens, w: why",
        ViewName::One => "w: why, Esc: back",
        ViewName::Why => "Enter: the actor",
        ViewName::Services => "",
    }
}

/// Returns the colour of a kind of suspects.
pub(super) fn trouble_style(trouble: Trouble) -> Style {
    let color = match trouble {
        Trouble::Stuck => Color::Red,
        Trouble::Slow => Color::Yellow,
        Trouble::Growing => Color::Magenta,
        Trouble::Faulting => Color::LightRed,
    };
    PLAIN.fg(color).add_modifier(Modifier::BOLD)
}

/// Returns the style of a link of a chain.
pub(super) fn link_style(kind: LinkKind) -> Style {
    match kind {
        LinkKind::Step => PLAIN,
        LinkKind::Remark => DIM,
        LinkKind::Cause => ALARM,
    }
}

/// Returns the letter of a state, and its style.
pub(super) fn state_letter(state: ActorState) -> (&'static str, Style) {
    match state {
        ActorState::Unseen => (" ", PLAIN),
        ActorState::Waiting => ("w", DIM),
        ActorState::Ready => ("r", PLAIN.fg(Color::Yellow)),
        ActorState::Running => ("R", PLAIN.fg(Color::Green)),
    }
}

/// Returns a number with its thousands apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Returns a number in at most five characters: `999`, `12.3k`, `4567k`, `12.3M`.
pub(super) fn short(number: u64) -> String {
    let tenth = |unit: u64, name: &str| {
        let (whole, part) = (number / unit, number % unit * 10 / unit);
        match whole {
            0..100 => format!("{whole}.{part}{name}"),
            _ => format!("{whole}{name}"),
        }
    };
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => tenth(1_000, "k"),
        1_000_000..1_000_000_000 => tenth(1_000_000, "M"),
        _ => tenth(1_000_000_000, "G"),
    }
}

/// Returns an estimate of how long a message waits, in seconds.
pub(super) fn wait_estimate(wait: Option<f64>) -> String {
    match wait {
        None => "–".to_owned(),
        Some(f64::INFINITY) => "stalled".to_owned(),
        Some(seconds) => format!("≈{}", duration((seconds * 1e6) as u64)),
    }
}

/// Returns the heights of the last values as characters, as many as there is room for.
pub(super) fn sparkline<'a>(
    values: impl DoubleEndedIterator<Item = &'a u64>,
    room: usize,
) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut last: Vec<u64> = values.rev().take(room).copied().collect();
    last.reverse();
    let most = last.iter().copied().max().unwrap_or(0).max(1);
    let bar = |value: &u64| match value {
        0 => ' ',
        value => BARS[(value.saturating_mul(7) / most) as usize],
    };
    last.iter().map(bar).collect()
}

/// Returns a time of the day in UTC, of a Unix time.
pub(super) fn clock(at_ms: u64) -> String {
    if at_ms == 0 {
        return "--:--:--".to_owned();
    }
    let seconds = at_ms / 1_000;
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::{clock, short, sparkline, thousands};

    #[test]
    fn numbers_are_short_and_can_be_read() {
        let texts = [999, 9_999, 12_345, 123_456, 12_345_678].map(short);
        assert_eq!(texts, ["999", "9999", "12.3k", "123k", "12.3M"]);
        assert_eq!(thousands(1_234_567), "1 234 567");
        assert_eq!(clock(1_732_860_000_000), "06:00:00");
    }

    #[test]
    fn a_sparkline_has_the_last_values() {
        assert_eq!(sparkline([9, 0, 1, 7].iter(), 3), " ▂█");
    }
}
