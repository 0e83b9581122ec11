//! Keys and the mouse, as actions of the screen. The keys are those of htop, where it has them.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// A view of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewName {
    /// What to look at, and the figures of the runtime.
    Runtime,
    /// All actors.
    Actors,
    /// One actor.
    One,
    /// Suspects, and the causes of one of them.
    Why,
    /// What services and packages show.
    Services,
    /// The log.
    Log,
}

/// What a key or the mouse asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Shows a view.
    Show(ViewName),
    /// Shows the next view, or the one before.
    NextView,
    /// Shows the view before.
    PreviousView,
    /// Moves the cursor by so many rows.
    Move(i32),
    /// Moves the cursor by so many pages.
    MovePage(i32),
    /// Moves the cursor to the first row.
    First,
    /// Moves the cursor to the last row.
    Last,
    /// Opens what the cursor is at.
    Open,
    /// Explains the actor at the cursor.
    Explain,
    /// Goes back to what was shown before.
    Back,
    /// Begins to type a text to search for.
    Search,
    /// Begins to type a text that shown actors have.
    Filter,
    /// Shows the actors as a tree, or as a list.
    Tree,
    /// Shows one row for each function, or for each actor.
    Group,
    /// Sorts by the column of this number.
    Sort(SortBy),
    /// Sorts by the next column, or by the one before.
    SortNext(i32),
    /// Sorts in the other direction.
    Invert,
    /// Shows the keys, or hides them.
    Help,
    /// Stops to read, or begins again.
    Pause,
    /// Adds a character to what is typed.
    Type(char),
    /// Removes the last character.
    Erase,
    /// A click at a column and a row of the terminal.
    Click(u16, u16),
    /// Draws all anew.
    Redraw,
    /// Ends the console.
    Quit,
}

/// A column by which actors are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// Their numbers.
    Number,
    /// What they do.
    State,
    /// The messages that wait.
    Mailbox,
    /// Messages a second.
    Rate,
    /// The share of the time in which they were busy.
    Busy,
    /// The longest turn.
    Longest,
    /// How often they were restarted.
    Restarts,
    /// How long they have had no turn.
    Still,
    /// Their names.
    Name,
}

impl SortBy {
    /// All columns, in the order of the screen.
    pub const ALL: [SortBy; 9] = [
        SortBy::Number,
        SortBy::State,
        SortBy::Mailbox,
        SortBy::Rate,
        SortBy::Busy,
        SortBy::Longest,
        SortBy::Restarts,
        SortBy::Still,
        SortBy::Name,
    ];
}

/// Returns what an event of the terminal asks for. While a text is typed, keys are its characters.
pub fn action(event: &Event, is_typing: bool) -> Option<Action> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => match is_typing {
            true => typed(key),
            false => pressed(key),
        },
        Event::Mouse(mouse) => moused(mouse),
        Event::Resize(_, _) => Some(Action::Redraw),
        _ => None,
    }
}

fn is_control(key: &KeyEvent, letter: char) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char(letter)
}

fn typed(key: &KeyEvent) -> Option<Action> {
    if is_control(key, 'c') {
        return Some(Action::Quit);
    }
    match key.code {
        KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => Some(Action::Type(c)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::Open),
        KeyCode::Esc => Some(Action::Back),
        KeyCode::F(3) => Some(Action::Search),
        KeyCode::Up => Some(Action::Move(-1)),
        KeyCode::Down => Some(Action::Move(1)),
        _ => None,
    }
}

fn pressed(key: &KeyEvent) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('l') => Some(Action::Redraw),
            _ => None,
        };
    }
    let action = match key.code {
        KeyCode::Char(letter) => return lettered(letter),
        KeyCode::F(1) => Action::Help,
        KeyCode::F(3) => Action::Search,
        KeyCode::F(4) => Action::Filter,
        KeyCode::F(5) => Action::Tree,
        KeyCode::F(6) => Action::SortNext(1),
        KeyCode::F(10) => Action::Quit,
        KeyCode::Up => Action::Move(-1),
        KeyCode::Down => Action::Move(1),
        KeyCode::PageUp => Action::MovePage(-1),
        KeyCode::PageDown => Action::MovePage(1),
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Enter => Action::Open,
        KeyCode::Esc | KeyCode::Backspace => Action::Back,
        KeyCode::Tab | KeyCode::Right => Action::NextView,
        KeyCode::BackTab | KeyCode::Left => Action::PreviousView,
        _ => return None,
    };
    Some(action)
}

fn lettered(letter: char) -> Option<Action> {
    let action = match letter {
        '1' => Action::Show(ViewName::Runtime),
        '2' => Action::Show(ViewName::Actors),
        '3' => Action::Show(ViewName::Why),
        '4' => Action::Show(ViewName::Services),
        '5' => Action::Show(ViewName::Log),
        'w' => Action::Explain,
        'j' => Action::Move(1),
        'k' => Action::Move(-1),
        '/' => Action::Search,
        '\\' => Action::Filter,
        't' => Action::Tree,
        'g' => Action::Group,
        '>' | '.' => Action::SortNext(1),
        '<' | ',' => Action::SortNext(-1),
        'I' => Action::Invert,
        'P' => Action::Sort(SortBy::Busy),
        'M' => Action::Sort(SortBy::Mailbox),
        'T' => Action::Sort(SortBy::Longest),
        'N' => Action::Sort(SortBy::Number),
        'Z' => Action::Pause,
        '?' | 'h' => Action::Help,
        'q' => Action::Quit,
        _ => return None,
    };
    Some(action)
}

fn moused(mouse: &MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Action::Click(mouse.column, mouse.row)),
        MouseEventKind::ScrollDown => Some(Action::Move(3)),
        MouseEventKind::ScrollUp => Some(Action::Move(-3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn the_keys_are_those_of_htop() {
        let keys = [
            (KeyCode::F(1), Action::Help),
            (KeyCode::F(3), Action::Search),
            (KeyCode::Char('/'), Action::Search),
            (KeyCode::F(4), Action::Filter),
            (KeyCode::Char('\\'), Action::Filter),
            (KeyCode::F(5), Action::Tree),
            (KeyCode::Char('t'), Action::Tree),
            (KeyCode::Char('I'), Action::Invert),
            (KeyCode::Char('P'), Action::Sort(SortBy::Busy)),
            (KeyCode::Char('M'), Action::Sort(SortBy::Mailbox)),
            (KeyCode::Char('Z'), Action::Pause),
            (KeyCode::F(10), Action::Quit),
            (KeyCode::Char('q'), Action::Quit),
        ];
        for (code, expected) in keys {
            assert_eq!(action(&key(code), false), Some(expected), "{code}");
        }
    }

    #[test]
    fn keys_are_characters_while_a_text_is_typed() {
        assert_eq!(
            action(&key(KeyCode::Char('q')), true),
            Some(Action::Type('q'))
        );
        assert_eq!(action(&key(KeyCode::Esc), true), Some(Action::Back));
        let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&Event::Key(end), true), Some(Action::Quit));
    }
}
