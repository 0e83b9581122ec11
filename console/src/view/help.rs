//! The keys.

use super::paint::PLAIN;
use super::pane::Pane;

const KEYS: &str = "\
 1 2 3 4 5  Tab    views: runtime, actors, why, services, log
 Up Down  j k      the cursor; also PgUp PgDn Home End and the wheel
 Enter             opens what is at the cursor; so does a second click
 w                 why: what holds up the actor at the cursor
 Esc               back
 Of the actors:
 F3  /             search; again F3: the next one.  #7 is the id 7
 F4  \\             filter by name, key, group, machine, thread
 F5  t             tree of parents
 g                 group by name; Enter: those of a group
 F6  > <           sort by the next column; a click on its head
 P  M  W  T  N  I  sort by busy, mailbox, wait, longest, id; invert
 Z                 pause, go on
 F1  ?             these keys
 F10  q            end

 STATE  blocked: it waits, but not for a message
 WAIT   estimates how long a message waits: MAILBOX ÷ messages handled a
        second in the last refreshes; stalled: none was handled
 LONGEST and BUSY% are samples, one turn in 64, unless they are measured
 RST  restarts      STILL  the time without a turn";

pub(super) fn draw(pane: &mut Pane<'_>) {
    let mut frame = pane.framed(" Keys ", 76, KEYS.lines().count() as u16 + 2);
    for (row, line) in KEYS.lines().enumerate() {
        frame.put(0, row as u16, line, PLAIN);
    }
}
