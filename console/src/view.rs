//! The screen: what is shown of a model, and how actions change that.
//!
//! It draws into a buffer of ratatui and knows no terminal, so tests see its text. What costs a walk over
//! all actors is done once a refresh.

mod actors;
mod help;
mod log;
mod one;
mod paint;
mod reasons;
mod runtime;
mod services;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use paint::LinkStatus;

use crate::input::{Action, SortBy, ViewName};
use crate::model::Model;
use crate::why::{Suspects, suspects};
use actors::ActorTable;
use paint::{ACCENT, DIM, PLAIN, REVERSED, fill, put};

/// What the program has to do after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Nothing but to draw.
    Stay,
    /// To stop reading, or to begin again.
    TogglePause,
    /// To end.
    Leave,
}

/// What is typed at the foot of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    Search,
    Filter,
}

/// A place of the screen, and what a click there does.
type Spot = (Rect, Action);

/// What is shown.
#[derive(Debug)]
pub struct Screen {
    view: ViewName,
    /// The views before.
    earlier: Vec<(ViewName, Option<u64>)>,
    /// What is said of the connection.
    status: LinkStatus,
    /// Where the lines come from.
    origin: String,
    is_helping: bool,
    typing: Option<(Typing, String)>,
    suspects: Suspects,
    /// The refresh of which the suspects are.
    looked_at: (u64, u32),
    /// The kind of suspects at the cursor of the start view.
    kind_at: usize,
    /// The row at the cursor of "why".
    suspect_at: usize,
    /// The actor that is explained beside the suspects.
    asked: Option<u64>,
    table: ActorTable,
    /// The actor that is shown alone.
    one: Option<u64>,
    /// The first line that is shown of a long text.
    scroll: usize,
    /// The line of the log at the cursor, from the last one back.
    log_at: usize,
    spots: Vec<Spot>,
    /// The rows that a page has.
    page: usize,
}

impl Screen {
    /// Creates the start view for lines from here.
    pub fn new(origin: &str) -> Self {
        Screen {
            view: ViewName::Runtime,
            earlier: Vec::new(),
            status: LinkStatus::Connecting,
            origin: crate::model::escape(origin),
            is_helping: false,
            typing: None,
            suspects: Suspects::default(),
            looked_at: (0, 0),
            kind_at: 0,
            suspect_at: 0,
            asked: None,
            table: ActorTable::default(),
            one: None,
            scroll: 0,
            log_at: 0,
            spots: Vec::new(),
            page: 1,
        }
    }

    /// Says how the connection is.
    pub fn set_status(&mut self, status: LinkStatus) {
        self.status = status;
    }

    /// Returns whether keys are characters of a text.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// Returns the actor whose figures are to be kept.
    pub fn wants(&self) -> Option<u64> {
        self.one
    }

    /// Does what a key or the mouse asks for.
    pub fn act(&mut self, action: Action, model: &Model) -> Outlook {
        self.look(model);
        if let Action::Click(column, row) = action {
            return self.click(column, row, model);
        }
        if let Some((typing, text)) = self.typing.take() {
            return self.type_in(typing, text, action, model);
        }
        if self.is_helping && action != Action::Quit {
            self.is_helping = false;
            return Outlook::Stay;
        }
        match action {
            Action::Quit => return Outlook::Leave,
            Action::Pause => return Outlook::TogglePause,
            Action::Help => self.is_helping = true,
            Action::Show(view) => self.show(view),
            Action::NextView => self.show_beside(1),
            Action::PreviousView => self.show_beside(-1),
            Action::Back => self.go_back(),
            Action::Open => self.open(model),
            Action::Explain => self.explain(model),
            Action::Search => self.begin_to_type(Typing::Search),
            Action::Filter => self.begin_to_type(Typing::Filter),
            Action::Tree => self.of_actors(ActorTable::toggle_tree),
            Action::Group => self.of_actors(ActorTable::toggle_groups),
            Action::Invert => self.of_actors(ActorTable::invert),
            Action::Sort(column) => self.of_actors(|table| table.sort(column)),
            Action::SortNext(by) => self.of_actors(|table| table.sort_next(by)),
            Action::Move(by) => self.step(by as isize, model),
            Action::MovePage(by) => self.step(by as isize * self.page as isize, model),
            Action::First => self.step(isize::MIN / 2, model),
            Action::Last => self.step(isize::MAX / 2, model),
            Action::Type(_) | Action::Erase | Action::Redraw | Action::Click(..) => {}
        }
        Outlook::Stay
    }

    /// Finds the suspects of this refresh.
    fn look(&mut self, model: &Model) {
        let now = (model.at_ms(), model.refreshes());
        if self.looked_at != now {
            self.looked_at = now;
            reasons::put_suspects(self, suspects(model));
        }
    }

    /// Shows a view, or the list of actors for keys that change it.
    fn show(&mut self, view: ViewName) {
        if view == ViewName::Why {
            self.asked = None;
        }
        if self.view != view {
            self.earlier.push((self.view, self.one));
            self.earlier.drain(..self.earlier.len().saturating_sub(16));
        }
        self.view = view;
        self.scroll = 0;
        if view != ViewName::One {
            self.one = None;
        }
    }

    fn show_beside(&mut self, by: isize) {
        const TABS: [ViewName; 5] = paint::TABS;
        let at = TABS.iter().position(|tab| *tab == self.view).unwrap_or(1);
        let next = (at as isize + by).rem_euclid(TABS.len() as isize);
        self.show(TABS[next as usize]);
    }

    fn go_back(&mut self) {
        let has_filter = self.view == ViewName::Actors && self.table.has_filter();
        if has_filter {
            self.table.set_filter("");
        } else if let Some((view, one)) = self.earlier.pop() {
            (self.view, self.one, self.scroll) = (view, one, 0);
        }
    }

    fn of_actors(&mut self, change: impl FnOnce(&mut ActorTable)) {
        if self.view != ViewName::Actors {
            self.show(ViewName::Actors);
        }
        change(&mut self.table);
    }

    fn begin_to_type(&mut self, typing: Typing) {
        self.of_actors(|_| ());
        let text = match typing {
            Typing::Search => String::new(),
            Typing::Filter => self.table.filter().to_owned(),
        };
        self.typing = Some((typing, text));
    }

    fn type_in(
        &mut self,
        typing: Typing,
        mut text: String,
        action: Action,
        model: &Model,
    ) -> Outlook {
        match action {
            Action::Quit => return Outlook::Leave,
            Action::Open => return Outlook::Stay,
            Action::Back => {
                if typing == Typing::Filter {
                    self.table.set_filter("");
                }
                return Outlook::Stay;
            }
            Action::Type(c) => text.push(c),
            Action::Erase => drop(text.pop()),
            // The next one that matches.
            Action::Search => self.table.step(1, model),
            Action::Move(by) => {
                self.typing = Some((typing, text));
                self.table.step(by as isize, model);
                return Outlook::Stay;
            }
            _ => {}
        }
        match typing {
            Typing::Filter => self.table.set_filter(&text),
            Typing::Search => self.table.find(&text, model),
        }
        self.typing = Some((typing, text));
        Outlook::Stay
    }

    /// Returns the actor at the cursor.
    fn at_cursor(&mut self, model: &Model) -> Option<u64> {
        match self.view {
            ViewName::Runtime | ViewName::Why => self.suspect(),
            ViewName::Actors => self.table.actor_at_cursor(model),
            ViewName::One => self.one,
            ViewName::Log => log::actor_at(model, self.log_at),
            ViewName::Services => None,
        }
    }

    fn open(&mut self, model: &Model) {
        if self.view == ViewName::Runtime {
            return self.explain(model);
        }
        if self.view == ViewName::Actors && self.table.opens_group(model) {
            return;
        }
        let Some(id) = self.at_cursor(model) else {
            return;
        };
        if self.view != ViewName::One {
            self.show(ViewName::One);
            self.one = Some(id);
        }
    }

    /// Explains the actor at the cursor, or shows the suspects.
    fn explain(&mut self, model: &Model) {
        let asked = self.at_cursor(model);
        let is_listed = matches!(self.view, ViewName::Runtime | ViewName::Why);
        if self.view != ViewName::Why {
            self.show(ViewName::Why);
        }
        if is_listed {
            // The start view lists the first of each kind, the other one all.
            self.suspect_at = reasons::row_of(self, asked, model);
        } else {
            self.asked = asked;
            self.suspect_at = 0;
        }
    }

    /// Moves the cursor.
    fn step(&mut self, by: isize, model: &Model) {
        let count = match self.view {
            ViewName::Actors => return self.table.step(by, model),
            ViewName::One | ViewName::Services => {
                self.scroll = self.scroll.saturating_add_signed(by);
                return;
            }
            ViewName::Log => {
                let last = model.log().len().saturating_sub(1);
                self.log_at = self.log_at.saturating_add_signed(-by).min(last);
                return;
            }
            ViewName::Runtime => runtime::rows(self).len(),
            ViewName::Why => reasons::rows(self, model).len(),
        };
        let at = match self.view {
            ViewName::Runtime => &mut self.kind_at,
            _ => &mut self.suspect_at,
        };
        *at = at.saturating_add_signed(by).min(count.saturating_sub(1));
        self.scroll = 0;
    }

    fn click(&mut self, column: u16, row: u16, model: &Model) -> Outlook {
        let at = ratatui::layout::Position::new(column, row);
        let spot = self.spots.iter().rev().find(|(area, _)| area.contains(at));
        let Some((_, action)) = spot.cloned() else {
            return Outlook::Stay;
        };
        match action {
            // A row: the first click goes there, the second opens it.
            Action::Move(0) => self.act(Action::Open, model),
            other => self.act(other, model),
        }
    }

    /// Draws all.
    pub fn draw(&mut self, model: &Model, area: Rect, buffer: &mut Buffer) {
        self.look(model);
        self.spots.clear();
        if area.width < 20 || area.height < 6 {
            put(buffer, area, 0, 0, "too small", PLAIN);
            return;
        }
        self.draw_head(model, area, buffer);
        let body = Rect::new(area.x, area.y + 2, area.width, area.height - 3);
        self.page = usize::from(body.height.saturating_sub(2)).max(1);
        if !model.is_whole() {
            self.draw_waiting(model, body, buffer);
        } else {
            match self.view {
                ViewName::Runtime => runtime::draw(self, model, body, buffer),
                ViewName::Actors => self.table.draw(model, body, buffer, &mut self.spots),
                ViewName::One => one::draw(self, model, body, buffer),
                ViewName::Why => reasons::draw(self, model, body, buffer),
                ViewName::Services => services::draw(self, model, body, buffer),
                ViewName::Log => log::draw(self, model, body, buffer),
            }
        }
        self.draw_foot(area, buffer);
        if self.is_helping {
            help::draw(area, buffer);
        }
    }

    fn draw_waiting(&self, model: &Model, body: Rect, buffer: &mut Buffer) {
        let text = match model.actors().len() {
            0 => self.status.text(),
            read => format!("reading the first snapshot: {read} actors"),
        };
        put(buffer, body, 2, 1, &text, PLAIN);
    }

    fn draw_head(&mut self, model: &Model, area: Rect, buffer: &mut Buffer) {
        paint::head(model, &self.origin, &self.status, area, buffer);
        let mut column = 0;
        for (at, tab) in paint::TABS.into_iter().enumerate() {
            let is_shown =
                tab == self.view || tab == ViewName::Actors && self.view == ViewName::One;
            let text = format!(" {} {} ", at + 1, paint::tab_name(tab));
            let width = text.chars().count() as u16;
            let style = if is_shown { REVERSED } else { PLAIN };
            put(buffer, area, column, 1, &text, style);
            let place = Rect::new(area.x + column, area.y + 1, width, 1);
            self.spots.push((place, Action::Show(tab)));
            column += width;
        }
        put(buffer, area, column + 1, 1, paint::subtitle(self.view), DIM);
    }

    fn draw_foot(&mut self, area: Rect, buffer: &mut Buffer) {
        let row = area.height - 1;
        if let Some((typing, text)) = &self.typing {
            let what = match typing {
                Typing::Search => "Search",
                Typing::Filter => "Filter",
            };
            fill(buffer, area, row, ACCENT);
            put(buffer, area, 0, row, &format!("{what}: {text}_"), ACCENT);
            return;
        }
        let keys: &[(&str, &str, Action)] = &[
            ("F1", "Help", Action::Help),
            ("F3", "Search", Action::Search),
            ("F4", "Filter", Action::Filter),
            ("F5", "Tree", Action::Tree),
            ("F6", "Sort", Action::SortNext(1)),
            ("g", "Group", Action::Group),
            ("w", "Why", Action::Explain),
            ("Z", "Pause", Action::Pause),
            ("F10", "Quit", Action::Quit),
        ];
        let mut column = 0;
        for (key, name, action) in keys {
            let begin = column;
            column = put(buffer, area, column, row, key, PLAIN);
            column = put(buffer, area, column, row, &format!("{name:<7}"), ACCENT);
            let place = Rect::new(area.x + begin, area.y + row, column - begin, 1);
            self.spots.push((place, action.clone()));
        }
    }

    /// Returns the suspect or the asked actor at the cursor.
    fn suspect(&self) -> Option<u64> {
        let rows = match self.view {
            ViewName::Runtime => runtime::rows(self),
            _ => return reasons::actor_at(self),
        };
        rows.get(self.kind_at)?.map(|suspect| suspect.actor)
    }
}

/// Returns the name of a column.
fn column_name(column: SortBy) -> &'static str {
    match column {
        SortBy::Number => "#",
        SortBy::State => "STATE",
        SortBy::Mailbox => "MAILBOX",
        SortBy::Rate => "MSG/S",
        SortBy::Busy => "BUSY%",
        SortBy::Longest => "LONGEST",
        SortBy::Restarts => "RST",
        SortBy::Still => "STILL",
        SortBy::Name => "NAME",
    }
}
