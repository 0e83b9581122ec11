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
    /// Sorts by a column.
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
    Id,
    /// What they do.
    State,
    /// The messages that wait.
    Mailbox,
    /// How long a message waits in the mailbox.
    Wait,
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

fn has_control(key: &KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL)
}

fn typed(key: &KeyEvent) -> Option<Action> {
    let action = match key.code {
        KeyCode::Char('c') if has_control(key) => Action::Quit,
        KeyCode::Char(c) if !has_control(key) => Action::Type(c),
        KeyCode::Backspace => Action::Erase,
        KeyCode::Enter => Action::Open,
        KeyCode::Esc => Action::Back,
        KeyCode::F(3) => Action::Search,
        KeyCode::Up => Action::Move(-1),
        KeyCode::Down => Action::Move(1),
        _ => return None,
    };
    Some(action)
}

fn pressed(key: &KeyEvent) -> Option<Action> {
    use KeyCode::{Char, F};
    let action = match key.code {
        Char('c') if has_control(key) => Action::Quit,
        Char('l') if has_control(key) => Action::Redraw,
        _ if has_control(key) => return None,
        Char('1') => Action::Show(ViewName::Runtime),
        Char('2') => Action::Show(ViewName::Actors),
        Char('3') => Action::Show(ViewName::Why),
        Char('4') => Action::Show(ViewName::Services),
        Char('5') => Action::Show(ViewName::Log),
        KeyCode::Tab | KeyCode::Right => Action::NextView,
        KeyCode::BackTab | KeyCode::Left => Action::PreviousView,
        KeyCode::Up | Char('k') => Action::Move(-1),
        KeyCode::Down | Char('j') => Action::Move(1),
        KeyCode::PageUp => Action::MovePage(-1),
        KeyCode::PageDown => Action::MovePage(1),
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Enter => Action::Open,
        KeyCode::Esc | KeyCode::Backspace => Action::Back,
        Char('w') => Action::Explain,
        F(3) | Char('/') => Action::Search,
        F(4) | Char('\\') => Action::Filter,
        F(5) | Char('t') => Action::Tree,
        Char('g') => Action::Group,
        F(6) | Char('>' | '.') => Action::SortNext(1),
        Char('<' | ',') => Action::SortNext(-1),
        Char('I') => Action::Invert,
        Char('P') => Action::Sort(SortBy::Busy),
        Char('M') => Action::Sort(SortBy::Mailbox),
        Char('W') => Action::Sort(SortBy::Wait),
        Char('T') => Action::Sort(SortBy::Longest),
        Char('N') => Action::Sort(SortBy::Id),
        Char('Z') => Action::Pause,
        F(1) | Char('?' | 'h') => Action::Help,
        F(10) | Char('q') => Action::Quit,
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
            (KeyCode::Char('W'), Action::Sort(SortBy::Wait)),
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
