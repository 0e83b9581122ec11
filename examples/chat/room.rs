//! A room: an actor that passes each line on to all members but the speaker, and waits for no
//! member.
//!
//! The outbox of a member is a bounded mailbox. While it is full, the room drops and counts the
//! lines for that member. It waits in line for one place, as a source beside its own mailbox. In
//! that place it tells the member how many lines are missing there.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom::{Address, Context, Permit, Refusal, Reply, SourceGuard};

/// What a room sends to a member.
pub enum Line {
    /// The text is shared by all members.
    Text(Arc<str>),
    /// This many lines were dropped here.
    Missed(u64),
}

/// The messages of a room. A member is known by the id of its actor.
pub enum ToRoom {
    /// Is answered with the number of other members, or refused if the name is in use.
    Enter(String, Address<Line>, Reply<usize>),
    Say(u64, String),
    /// Is answered with the number of dropped lines that the member was not told of.
    Leave(u64, Reply<u64>),
    /// There is room in the outbox of a member, unless it has ended.
    Place(u64, Option<Permit<Line>>),
    Ended(u64),
}

struct Member {
    name: String,
    outbox: Address<Line>,
    /// The number of dropped lines that are not told yet. The room waits for a place if it is not
    /// zero.
    missed: u64,
    was_slow: bool,
    _watch: SourceGuard,
}

/// Ends by itself once it has no address: the members have them.
pub async fn room(mut cx: Context<ToRoom>) {
    let mut members: HashMap<u64, Member> = HashMap::new();
    while let Some(message) = cx.recv().await {
        match message {
            ToRoom::Enter(name, _, answer) if members.values().any(|other| other.name == name) => {
                answer.refuse(Refusal::new("name in use", name));
            }
            ToRoom::Enter(name, outbox, answer) => {
                let id = outbox.id();
                answer.send(members.len());
                pass_on(&mut members, &mut cx, id, format!("* {name} came"));
                let member = Member {
                    name,
                    missed: 0,
                    was_slow: false,
                    _watch: cx.watch(&outbox, move |_| ToRoom::Ended(id)),
                    outbox,
                };
                members.insert(id, member);
            }
            ToRoom::Say(id, text) => {
                if let Some(Member { name, .. }) = members.get(&id) {
                    let line = format!("{name}: {text}");
                    pass_on(&mut members, &mut cx, id, line);
                }
            }
            ToRoom::Leave(id, answer) => {
                if let Some(member) = members.remove(&id) {
                    answer.send(member.missed);
                    let line = format!("* {} left", member.name);
                    pass_on(&mut members, &mut cx, id, line);
                }
            }
            ToRoom::Place(id, Some(place)) => {
                if let Some(member) = members.get_mut(&id) {
                    place.send(Line::Missed(std::mem::take(&mut member.missed)));
                }
            }
            // It leaves, or its actor has ended.
            ToRoom::Place(_, None) => {}
            // Without `Leave`: its actor panicked or was killed.
            ToRoom::Ended(id) => {
                if let Some(member) = members.remove(&id) {
                    let line = format!("* {} is gone", member.name);
                    pass_on(&mut members, &mut cx, id, line);
                }
            }
        }
    }
}

/// Sends a line to all members but one, without waiting.
fn pass_on(
    members: &mut HashMap<u64, Member>,
    cx: &mut Context<ToRoom>,
    speaker: u64,
    line: String,
) {
    let line: Arc<str> = line.into();
    for (&id, member) in members.iter_mut().filter(|(id, _)| **id != speaker) {
        if member.missed == 0 {
            if member.outbox.tell(Line::Text(line.clone())).is_ok() {
                continue;
            }
            if !std::mem::replace(&mut member.was_slow, true) {
                println!("{} is slow", member.name);
            }
            let outbox = member.outbox.clone();
            let place = async move { outbox.reserve().await.ok() };
            cx.on_return(place, move |place| ToRoom::Place(id, place.ok().flatten()));
        }
        member.missed += 1;
    }
}
