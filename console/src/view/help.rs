//! The keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget};

use super::paint::{PLAIN, put};

const KEYS: &str = "\
 1 2 3 4 5  Tab    views: runtime, actors, why, services, log
 Up Down  j k      the cursor; also PgUp PgDn Home End and the wheel
 Enter             opens what is at the cursor; so does a second click
 w                 why: what holds up the actor at the cursor
 Esc               back

 Of the actors:
 F3  /             search; again F3: the next one.  #7 is a number
 F4  \\             filter by name, function, thread
 F5  t             tree of parents
 g                 groups by function or name; Enter: those of a group
 F6  > <           sort by the next column; a click on its head
 P  M  T  N  I     sort by busy, mailbox, longest turn, number; invert

 Z                 pause, go on
 F1  ?             these keys
 F10  q            end

 LONGEST and BUSY% are samples, one turn in 64, unless they are measured";

pub(super) fn draw(area: Rect, buffer: &mut Buffer) {
    let height = (KEYS.lines().count() as u16 + 2).min(area.height);
    let width = 76.min(area.width);
    let place = Rect::new(
        area.x + (area.width - width) / 2,
        area.y + (area.height - height) / 2,
        width,
        height,
    );
    Clear.render(place, buffer);
    let block = Block::bordered().title(" Keys ");
    let inner = block.inner(place);
    block.render(place, buffer);
    for (row, line) in KEYS.lines().enumerate() {
        put(buffer, inner, 0, row as u16, line, PLAIN);
    }
}
