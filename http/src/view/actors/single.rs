//! The page of one actor: all of its status, what it waits for, its parent and children, its faults.

use std::fmt::Write;

use greenroom::policy::TaskInfo;
use greenroom::{ActorWait, Runtime};

use super::figures::{rate, share, time, wait};
use super::look::{ActorsLook, SeenStatus};
use super::page::write_notes;
use super::query::PageQuery;
use super::rows::ActorRow;
use crate::view::escape::escape;

/// The number of lines of a trace that are shown.
const LINES: usize = 40;

/// The number of faults that are shown.
const FAULTS: usize = 20;

/// The number of children that are named.
const CHILDREN: usize = 8;

/// Writes the page of an actor up to its end. Returns false, and writes nothing, if there is none with
/// this number.
pub(super) fn write_actor(
    page: &mut String,
    look: &ActorsLook,
    runtime: &Runtime,
    id: u64,
) -> bool {
    let Some(seen) = look.actor(id) else {
        return false;
    };
    page.push_str("<p class=\"controls\"><a href=\"?\">all actors</a> <a href=\"");
    let same = PageQuery::default().members(&seen.status.task.called());
    let _ = write!(page, "{}\">actors of this name</a></p><h1>", same.link());
    escape(page, &seen.status.task.to_string());
    page.push_str("</h1>");
    write_notes(page, look);
    page.push_str("<div class=\"scroll\"><table class=\"one\">");
    write_waits(page, look, runtime, seen);
    write_kin(page, look, seen);
    for (what, value) in values(seen, look) {
        let _ = write!(page, "<tr><th>{what}</th><td>");
        escape(page, &value);
        page.push_str("</td></tr>\n");
    }
    page.push_str("</table></div>");
    write_history(page, runtime, id);
    true
}

/// Writes the last faults and lines of the trace of an actor, which may have ended.
pub(super) fn write_history(page: &mut String, runtime: &Runtime, id: u64) {
    write_faults(page, runtime, Some(id));
    write_trace(page, runtime, id);
}

/// Writes the parent and the children of the actor.
fn write_kin(page: &mut String, look: &ActorsLook, seen: SeenStatus<'_>) {
    page.push_str("<tr><th>parent</th><td>");
    match seen.status.parent.map(|id| (id, look.actor(id))) {
        None => page.push_str("none is known"),
        Some((_, Some(parent))) => write_link(page, &parent.status.task),
        Some((id, None)) => {
            let _ = write!(page, "#{id}, which has ended or is of another runtime");
        }
    }
    page.push_str("</td></tr>\n<tr><th>children</th><td>");
    let mut children: Vec<_> = look.children(seen.status.task.id()).collect();
    children.sort_unstable_by_key(|child| child.id());
    for (number, child) in children.iter().take(CHILDREN).enumerate() {
        page.push_str(if number > 0 { ", " } else { "" });
        write_link(page, child);
    }
    match children.len().saturating_sub(CHILDREN) {
        0 if children.is_empty() => page.push_str("none"),
        0 => {}
        more => {
            let _ = write!(page, ", and {more} more");
        }
    }
    page.push_str("</td></tr>\n");
}

/// Writes the last faults of an actor or of all, the newest first, if the runtime has kept any.
pub(super) fn write_faults(page: &mut String, runtime: &Runtime, of: Option<u64>) {
    let mut faults = runtime.faults();
    faults.retain(|fault| of.is_none() || fault.actor.as_ref().map(TaskInfo::id) == of);
    if faults.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Last faults</h2><div class=\"scroll\"><table class=\"one\">\
         <tr><th>before</th><td>what has happened</td></tr>\n",
    );
    for fault in faults.iter().rev().take(FAULTS) {
        let before = time(Some(fault.at.elapsed()));
        let _ = write!(page, "<tr><th>{before}</th><td>");
        escape(page, &fault.text);
        page.push_str("</td></tr>\n");
    }
    page.push_str("</table></div>");
}

/// Writes the last lines of the trace about the actor, if the tracer of the runtime keeps any.
fn write_trace(page: &mut String, runtime: &Runtime, id: u64) {
    let lines = runtime.trace_of(id);
    if lines.is_empty() {
        return;
    }
    page.push_str("<h2>Last lines of the trace</h2><div class=\"scroll\"><pre>");
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        escape(page, line);
        page.push('\n');
    }
    page.push_str("</pre></div>");
}

fn write_link(page: &mut String, to: &TaskInfo) {
    let _ = write!(page, "<a href=\"?id={}\">", to.id());
    escape(page, &to.to_string());
    page.push_str("</a>");
}

/// Writes what the actor waits for, with links to others.
fn write_waits(page: &mut String, look: &ActorsLook, runtime: &Runtime, seen: SeenStatus<'_>) {
    let report = look.report(runtime).iter();
    let mut of_actors = report.filter(|it| it.actor.is_some());
    let own = of_actors.find(|it| it.task.id() == seen.status.task.id());
    page.push_str("<tr><th>waits for</th><td>");
    match own.map(|it| &it.waits[..]) {
        None => page.push_str("nothing: it has ended"),
        Some([]) => page.push_str("nothing: it is in a turn, or ready for one"),
        Some(waits) => {
            for (number, wait) in waits.iter().enumerate() {
                page.push_str(if number > 0 { ", or " } else { "" });
                write_wait(page, wait);
            }
        }
    }
    page.push_str("</td></tr>\n");
}

fn write_wait(page: &mut String, wait: &ActorWait) {
    let (text, of): (_, Option<&TaskInfo>) = match wait {
        ActorWait::Message => ("a message", None),
        ActorWait::Answer(of) => ("the answer of ", Some(of)),
        ActorWait::Room(of) => ("room in the mailbox of ", Some(of)),
        ActorWait::End(of) => ("the end of ", Some(of)),
        ActorWait::Noted(what) => (*what, None),
        _ => ("something that nothing has noted", None),
    };
    escape(page, text);
    if let Some(of) = of {
        write_link(page, of);
    }
}

/// Returns all figures of the actor, with what they are.
fn values(seen: SeenStatus<'_>, look: &ActorsLook) -> Vec<(&'static str, String)> {
    let status = seen.status;
    let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
    let spawned = status.spawned_at.map_or_else(
        || "not kept: that needs endless_waits or long_turns".to_owned(),
        |at| at.to_string(),
    );
    let mailbox = match status.capacity {
        Some(capacity) => format!("{} of {capacity}", status.mailbox),
        None => status.mailbox.to_string(),
    };
    let is_measured = status.busy.is_some();
    let mut values = vec![("state", seen.state().to_owned())];
    let kinds = [
        ("machine", status.state.unwrap_or_default().to_owned()),
        ("key", status.key.as_deref().unwrap_or_default().to_owned()),
        ("names", status.names.join(", ")),
        ("groups", status.groups.join(", ")),
    ];
    values.extend(kinds.into_iter().filter(|(_, text)| !text.is_empty()));
    values.extend([
        ("spawned at", spawned),
        (
            "thread",
            status.thread.as_deref().unwrap_or("any worker").to_owned(),
        ),
        ("priority", status.task.priority().to_string()),
        ("handle", yes(status.has_handle)),
        ("addresses", status.addresses.to_string()),
        ("restarts", status.incarnation.to_string()),
        (
            "last fault",
            status.fault.clone().unwrap_or("none".to_owned()),
        ),
        ("mailbox", mailbox),
        ("displaced", status.displaced.to_string()),
    ]);
    if look.stats.is_counting {
        let sampled = &status.sampled;
        let of_sampled = (sampled.turns > 0).then_some(sampled.busy);
        values.extend([
            ("highest", status.highest.to_string()),
            ("wait", wait(ActorRow::of(seen).wait())),
            ("messages", status.messages.to_string()),
            ("messages/s", rate(seen.rate())),
            ("turns", status.turns.to_string()),
            ("sampled turns", sampled.turns.to_string()),
            ("time of the sampled turns", time(of_sampled)),
        ]);
    }
    values.push(("busy", share(seen.busy(), is_measured)));
    values.extend(
        status
            .busy
            .map(|busy| ("time of all turns", time(Some(busy)))),
    );
    values.push(("longest", time(seen.longest())));
    values
}
