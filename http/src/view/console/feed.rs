//! The lines for one viewer, in pieces: a viewer that takes its time has one piece in memory.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_lite::Stream;
use greenroom::{Changes, Runtime, Watch, unblock};
use hyper::body::Bytes;

use super::lines::{ActorLine, ConsoleEvent, ConsoleLines, FirstLine, RuntimeLine, unix_ms};
use super::section::Section;
use super::{ConsoleViewer, Mount};
use crate::view::service::tables;
use crate::view::stream::PageStream;

/// A piece has at least so many bytes, unless the refresh has no more.
const PIECE: usize = 64 << 10;

type NamedSections = Vec<(String, Section)>;

/// What one viewer gets.
pub(super) struct ConsoleStream {
    mount: Mount,
    watch: ConsoleWatch,
    /// Since when there is a console.
    begun: Instant,
    lines: ConsoleLines,
    is_greeted: bool,
    is_over: bool,
    /// What has been seen of a refresh whose sections are being made.
    making: Option<MadeSections>,
    refresh: Option<Refresh>,
    counted: CountedMessages,
    /// The number of the last fault that was logged.
    logged: u64,
    _viewer: ConsoleViewer,
}

/// The watch of a viewer. A request for the head alone begins none.
enum ConsoleWatch {
    New,
    /// It is begun on a thread that may take long.
    Begins(Pin<Box<dyn Future<Output = Option<Watch>> + Send>>),
    Begun(Watch),
    Over,
}

impl ConsoleWatch {
    /// Waits for what changes in the current runtime. There is nothing more when that shuts down.
    fn poll_changes(
        &mut self,
        interval: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Arc<Changes>>> {
        loop {
            *self = match self {
                ConsoleWatch::New => ConsoleWatch::Begins(Box::pin(unblock(move || {
                    Some(Runtime::try_current()?.watch(interval))
                }))),
                ConsoleWatch::Begins(watch) => match ready!(watch.as_mut().poll(cx)) {
                    Some(watch) => ConsoleWatch::Begun(watch),
                    None => ConsoleWatch::Over,
                },
                ConsoleWatch::Begun(watch) => return Pin::new(watch).poll_next(cx),
                ConsoleWatch::Over => return Poll::Ready(None),
            };
        }
    }
}

struct MadeSections {
    changes: Arc<Changes>,
    sections: Pin<Box<dyn Future<Output = NamedSections> + Send>>,
}

/// A refresh that is being written.
struct Refresh {
    changes: Arc<Changes>,
    sections: NamedSections,
    /// How many of its actors are written.
    written: usize,
    is_begun: bool,
}

/// The messages of each live actor, and those that all have handled since the viewer came.
#[derive(Default)]
struct CountedMessages {
    by_actor: HashMap<u64, u64>,
    /// Those of before a reset.
    before: HashMap<u64, u64>,
    total: u64,
}

impl CountedMessages {
    fn reset(&mut self) {
        self.before = std::mem::take(&mut self.by_actor);
    }

    fn note(&mut self, id: u64, messages: u64) {
        let before = self.by_actor.insert(id, messages);
        let before = before.or_else(|| self.before.get(&id).copied());
        self.total += messages.saturating_sub(before.unwrap_or_default());
    }
}

impl ConsoleStream {
    pub(super) fn new(mount: &Mount, viewer: ConsoleViewer, begun: Instant) -> Self {
        ConsoleStream {
            mount: mount.clone(),
            watch: ConsoleWatch::New,
            begun,
            lines: ConsoleLines::default(),
            is_greeted: false,
            is_over: false,
            making: None,
            refresh: None,
            counted: CountedMessages::default(),
            logged: 0,
            _viewer: viewer,
        }
    }

    /// Makes the sections on a thread that may take long.
    fn make_sections(&self, changes: Arc<Changes>) -> MadeSections {
        let mount = self.mount.clone();
        MadeSections {
            changes,
            sections: Box::pin(unblock(move || sections(&mount))),
        }
    }

    /// Writes a piece of the refresh. Returns whether that has ended.
    fn write(&mut self, mut refresh: Refresh) -> Option<Refresh> {
        let changes = refresh.changes.clone();
        let (stats, changed) = (&changes.stats, &changes.changed);
        if !self.is_greeted {
            self.is_greeted = true;
            self.lines.first(&FirstLine::of(stats, changed));
        }
        if !refresh.is_begun {
            refresh.is_begun = true;
            if changes.is_whole {
                self.counted.reset();
                self.lines.event(ConsoleEvent::Reset);
            }
        }
        for report in &changed[refresh.written..] {
            if self.lines.len() >= PIECE {
                return Some(refresh);
            }
            refresh.written += 1;
            let Some(actor) = &report.actor else { continue };
            self.counted.note(report.task.id(), actor.messages);
            let line = ActorLine::of(report, actor, stats);
            self.lines.event(ConsoleEvent::Actor(&line));
        }
        self.counted.before = HashMap::new();
        for &id in &changes.ended {
            self.counted.by_actor.remove(&id);
            self.lines.event(ConsoleEvent::Ended { id });
        }
        let actors = self.counted.by_actor.len();
        let line = RuntimeLine::of(&changes, self.begun.elapsed(), actors, self.counted.total);
        self.lines.event(ConsoleEvent::Runtime(line));
        // After a reset those come again that are kept.
        let seen = self.logged;
        for fault in changes.faults.iter().filter(|it| it.number > seen) {
            self.logged = fault.number;
            self.lines.event(ConsoleEvent::of_fault(fault));
        }
        for (name, section) in &refresh.sections {
            self.lines.event(ConsoleEvent::Section { name, section });
        }
        // When the walk began: a slow viewer reads the end of a refresh long after it.
        let at_ms = unix_ms(changes.at.elapsed());
        self.lines.event(ConsoleEvent::Tick { at_ms });
        None
    }

    fn end(&mut self, why: &'static str) -> Option<Bytes> {
        self.is_over = true;
        // A viewer that has not read the first line would take this for it.
        self.is_greeted.then(|| {
            self.lines.event(ConsoleEvent::End { why });
            self.lines.take().into()
        })
    }
}

impl PageStream for ConsoleStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(refresh) = self.refresh.take() {
                self.refresh = self.write(refresh);
                return Poll::Ready(Some(self.lines.take().into()));
            }
            if let Some(making) = &mut self.making {
                let sections = ready!(making.sections.as_mut().poll(cx));
                self.refresh = self.making.take().map(|making| Refresh {
                    changes: making.changes,
                    sections,
                    written: 0,
                    is_begun: false,
                });
                continue;
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let interval = self.mount.console.refresh;
            match ready!(self.watch.poll_changes(interval, cx)) {
                Some(changes) => self.making = Some(self.make_sections(changes)),
                None => return Poll::Ready(self.end("the runtime has shut down")),
            }
        }
    }

    fn last(&mut self) -> Option<Bytes> {
        self.end("the server has stopped")
    }
}

/// Makes all sections. One that panics is left out.
fn sections(mount: &Mount) -> NamedSections {
    let services = mount.services.iter();
    let services = tables(services.map(|(name, read)| (&**name, read())));
    let made = mount.console.sections.iter().filter_map(|(name, make)| {
        let made = catch_unwind(AssertUnwindSafe(|| make()));
        Some((name.clone(), made.ok()?))
    });
    services.into_iter().chain(made).collect()
}
