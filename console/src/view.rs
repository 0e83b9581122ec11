//! The screen: what is shown of a model, and how actions change that.
//!
//! It draws into a buffer of ratatui and knows no terminal, so tests see its text. What costs more than a
//! look at each actor is done once a refresh.

mod actors;
mod help;
mod log;
mod one;
mod paint;
mod pane;
mod reasons;
mod runtime;
mod services;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use paint::LinkStatus;

use crate::input::{Action, ViewName};
use crate::model::Model;
use crate::why::{Suspects, Trouble, suspects};
use actors::ActorTable;
use paint::{ACCENT, DIM, PLAIN, REVERSED};
use pane::{Pane, Spot};

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
    looked_at: u32,
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
    has_colors: bool,
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
            looked_at: 0,
            kind_at: 0,
            suspect_at: 0,
            asked: None,
            table: ActorTable::default(),
            one: None,
            scroll: 0,
            log_at: 0,
            spots: Vec::new(),
            has_colors: true,
            page: 1,
        }
    }

    /// Says how the connection is.
    pub fn set_status(&mut self, status: LinkStatus) {
        self.status = status;
    }

    /// Draws without colours from now on.
    pub fn drop_colors(&mut self) {
        self.has_colors = false;
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
        let now = model.refreshes();
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
        let tabs = paint::TABS;
        let at = tabs.iter().position(|(tab, _)| *tab == self.view);
        let next = at.unwrap_or(1) as isize + by;
        self.show(tabs[next.rem_euclid(tabs.len() as isize) as usize].0);
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
            ViewName::Runtime => {
                let first = self.suspects.of(Trouble::ALL[self.kind_at]).first();
                first.map(|suspect| suspect.actor)
            }
            ViewName::Why => reasons::actor_at(self),
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
            self.suspect_at = reasons::row_of(self, asked);
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
            ViewName::Runtime => Trouble::ALL.len(),
            ViewName::Why => reasons::count(self),
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
        let mut spots = Vec::new();
        self.draw_all(model, &mut Pane::new(area, buffer, &mut spots));
        self.spots = spots;
        if !self.has_colors {
            paint::drop_colors(buffer);
        }
    }

    fn draw_all(&mut self, model: &Model, pane: &mut Pane<'_>) {
        let (width, height) = (pane.width(), pane.height());
        if width < 20 || height < 6 {
            pane.put(0, 0, "too small", PLAIN);
            return;
        }
        self.draw_head(model, pane);
        let mut body = pane.within(0, 2, width, height - 3);
        self.page = usize::from(body.height().saturating_sub(2)).max(1);
        match self.view {
            _ if !model.is_whole() => self.draw_waiting(model, &mut body),
            ViewName::Runtime => runtime::draw(self, model, &mut body),
            ViewName::Actors => self.table.draw(model, &mut body),
            ViewName::One => one::draw(self, model, &mut body),
            ViewName::Why => reasons::draw(self, model, &mut body),
            ViewName::Services => services::draw(self, model, &mut body),
            ViewName::Log => log::draw(self, model, &mut body),
        }
        self.draw_foot(pane);
        if self.is_helping {
            help::draw(pane);
        }
    }

    fn draw_waiting(&self, model: &Model, pane: &mut Pane<'_>) {
        let text = match model.actors().len() {
            0 => self.status.text(),
            read => format!("reading the first snapshot: {read} actors"),
        };
        pane.put(2, 1, text, PLAIN);
    }

    fn draw_head(&self, model: &Model, pane: &mut Pane<'_>) {
        paint::head(model, &self.origin, &self.status, pane);
        let mut begin = 0;
        for ((tab, name), number) in paint::TABS.into_iter().zip(1..) {
            let is_shown = tab == self.view;
            let has_one = tab == ViewName::Actors && self.view == ViewName::One;
            let style = if is_shown || has_one { REVERSED } else { PLAIN };
            let end = pane.put(begin, 1, format!(" {number} {name} "), style);
            pane.on_click(begin..end, 1, Action::Show(tab));
            begin = end;
        }
        pane.put(begin + 1, 1, paint::subtitle(self.view), DIM);
    }

    fn draw_foot(&self, pane: &mut Pane<'_>) {
        let row = pane.height() - 1;
        if let Some((typing, text)) = &self.typing {
            pane.fill(row, ACCENT);
            pane.put(0, row, format!("{typing:?}: {text}_"), ACCENT);
            return;
        }
        let mut begin = 0;
        for (key, name, action) in [
            ("F1", "Help", Action::Help),
            ("F3", "Search", Action::Search),
            ("F4", "Filter", Action::Filter),
            ("F5", "Tree", Action::Tree),
            ("F6", "Sort", Action::SortNext(1)),
            ("g", "Group", Action::Group),
            ("w", "Why", Action::Explain),
            ("Z", "Pause", Action::Pause),
            ("F10", "Quit", Action::Quit),
        ] {
            let end = pane.put(begin, row, key, PLAIN);
            let end = pane.put(end, row, format!("{name:<7}"), ACCENT);
            pane.on_click(begin..end, row, action);
            begin = end;
        }
    }
}
