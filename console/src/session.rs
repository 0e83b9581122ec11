//! What happens to the lines of a feed: they are recorded, applied to a model, and drawn.

use crate::feed::{Fed, LineOrigin, LineRecord, whole_lines};
use crate::input::Action;
use crate::model::{Applied, BadLine, Model, escape};
use crate::view::{LinkStatus, Outlook, Screen};

/// A program that has sent nothing for so many refreshes is said to be silent.
const SILENT_REFRESHES: u64 = 3;

/// What has to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// To wait.
    Nothing,
    /// To draw.
    Draw,
    /// To connect again, and to draw.
    Reconnect,
    /// To end, with what is to be said.
    Fail(String),
}

/// A model, its screen, and what is known of the connection.
#[derive(Debug)]
pub struct Session {
    /// What is known of the program.
    pub model: Model,
    /// What is shown of it.
    pub screen: Screen,
    record: Option<LineRecord>,
    is_live: bool,
    is_paused: bool,
    status: LinkStatus,
}

impl Session {
    /// Creates a session that knows nothing yet.
    pub fn new(origin: &LineOrigin, record: Option<LineRecord>) -> Self {
        let (name, is_live) = match origin {
            LineOrigin::Live(endpoint, _) => (endpoint.to_string(), true),
            LineOrigin::Record(path) => (path.display().to_string(), false),
        };
        Session {
            model: Model::default(),
            screen: Screen::new(&name),
            record,
            is_live,
            is_paused: false,
            status: LinkStatus::Connecting,
        }
    }

    /// Returns whether nothing is to be read meanwhile.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Takes what a feed has read.
    pub fn take(&mut self, fed: Fed) -> Demand {
        match fed {
            Fed::Begins => {
                self.model.begin();
                self.set(LinkStatus::Connecting)
            }
            Fed::Lines(lines) => self.take_lines(&lines),
            Fed::Silence(seconds) => {
                let interval_ms = self.model.interval_ms().max(1_000);
                match seconds * 1_000 < SILENT_REFRESHES * interval_ms {
                    true => Demand::Nothing,
                    false => self.set(LinkStatus::Silent(seconds)),
                }
            }
            Fed::Lost(why, seconds) => {
                if !matches!(self.status, LinkStatus::Lost(..)) {
                    let text = format!("the connection is lost: {why}");
                    self.model.note("warning", &text, None);
                }
                self.set(LinkStatus::Lost(escape(&why), seconds))
            }
            Fed::Refused(why) => Demand::Fail(why),
            Fed::Over => self.set(LinkStatus::Ended("the record is over".to_owned())),
        }
    }

    fn take_lines(&mut self, lines: &[u8]) -> Demand {
        if let Some(record) = &mut self.record
            && let Err(error) = record.write(lines)
        {
            return Demand::Fail(format!("the record cannot be written: {error}"));
        }
        let mut demand = match self.status {
            LinkStatus::Silent(_) => self.set(LinkStatus::Live),
            _ => Demand::Nothing,
        };
        for line in whole_lines(lines) {
            demand = match self.model.apply(line) {
                Ok(Applied::Part) => continue,
                Ok(Applied::Refreshed) => {
                    self.flush();
                    self.set(match self.is_live {
                        true => LinkStatus::Live,
                        false => LinkStatus::Replaying,
                    })
                }
                Ok(Applied::Ends(why)) => {
                    let text = format!("the program sends no more: {why}");
                    self.model.note("note", &text, None);
                    self.set(LinkStatus::Ended(why))
                }
                Err(error @ BadLine::Protocol(_)) => return Demand::Fail(error.to_string()),
                Err(error) => return self.reject(&error),
            }
        }
        demand
    }

    /// Writes what came to the record, if there is one.
    fn flush(&mut self) {
        if let Some(record) = &mut self.record {
            // The next line that cannot be written says so.
            let _ = record.flush();
        }
    }

    /// Gives up a connection whose next line is of no use.
    fn reject(&mut self, error: &BadLine) -> Demand {
        let text = format!("{error}; connecting again");
        self.model.note("warning", &text, None);
        match self.is_live {
            true => {
                self.set(LinkStatus::Lost(error.to_string(), 1));
                Demand::Reconnect
            }
            false => Demand::Fail(format!("the record is not whole: {error}")),
        }
    }

    /// Shows how the connection is.
    fn set(&mut self, status: LinkStatus) -> Demand {
        self.status = status;
        let shown = match self.is_paused {
            true => LinkStatus::Paused,
            false => self.status.clone(),
        };
        self.screen.set_status(shown);
        Demand::Draw
    }

    /// Does what a key or the mouse asks for.
    pub fn act(&mut self, action: Action) -> Outlook {
        let outlook = self.screen.act(action, &self.model);
        if outlook == Outlook::TogglePause {
            self.is_paused ^= true;
            self.flush();
            self.set(self.status.clone());
        }
        self.model.follow(self.screen.wants());
        outlook
    }
}
