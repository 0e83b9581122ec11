//! `/console/v1`: what `greenroom-console` shows, as a line of JSON for each event.
//!
//! It only reads, and contents of messages are never sent. The protocol is `schema/console-v1.json`.

mod feed;
mod lines;
mod section;
mod token;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::header::HeaderValue;

pub(super) use lines::word_of_state;
pub(super) use section::SectionMaker;
pub use section::{Section, SectionCell};
use token::{is_shown, names_no_site};

use super::mount::Mount;
use super::stream::{PageStream, StreamPage, StreamRefusal, StreamRequest};
use feed::ConsoleStream;

/// The viewers that may watch at the same time.
const VIEWERS_MAX: usize = 4;

/// What a program sets for the console.
#[derive(Clone)]
pub(super) struct ConsoleSettings {
    pub(super) token: Option<Arc<str>>,
    pub(super) sections: Vec<(String, Arc<SectionMaker>)>,
    pub(super) refresh: Duration,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        ConsoleSettings {
            token: None,
            sections: Vec::new(),
            refresh: Duration::from_secs(1),
        }
    }
}

/// Returns the page `/console/v1`, which the program `greenroom-console` reads.
///
/// It has the actors of the current runtime and what each of them waits for, the figures of the
/// runtime, and [sections](Mount::section) of the program. It begins with everything, and goes on with
/// what has changed in each [refresh](Mount::refresh). All viewers share one
/// [walk](greenroom::Runtime::watch) over the actors.
/// There are at most four: another one is answered with 503. A viewer that is too slow gets everything
/// again, or is cut.
///
/// The page only reads, and never sends the contents of messages. On this machine it is open to each
/// program, and to no page of another site. Clients from elsewhere need a [token](Mount::token):
/// without that option they are answered with 403.
///
/// ```
/// use greenroom_http::{Section, Server, console};
///
/// let page = console().section("shop", || {
///     Section::new(["cart", "items"]).row(["7".into(), 3.into()])
/// });
/// let server = Server::bind("127.0.0.1:0").mount(page);
/// # drop(server);
/// ```
pub fn console() -> Mount {
    let (viewers, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    Mount::streams(
        "/console/v1",
        StreamPage {
            media: const { HeaderValue::from_static("application/x-ndjson") },
            begin: Box::new(move |mount, request| {
                check(&mount.console, request)?;
                let viewer = ConsoleViewer::enter(&viewers)?;
                let stream = ConsoleStream::new(mount, viewer, begun);
                Ok(Box::new(stream) as Box<dyn PageStream>)
            }),
        },
    )
}

/// Refuses a client that may not look.
fn check(options: &ConsoleSettings, request: &StreamRequest<'_>) -> Result<(), StreamRefusal> {
    let Some(token) = &options.token else {
        return match (request.is_local, request.may_read) {
            (true, true) => Ok(()),
            (true, false) => Err(StreamRefusal::Site),
            (false, _) => Err(StreamRefusal::Client(
                403,
                "other machines need a token, which the program sets with console().token(..)",
            )),
        };
    };
    if !is_shown(request.headers, token) {
        let why = "this console needs its token, as Authorization: Bearer TOKEN";
        return Err(StreamRefusal::Client(401, why));
    }
    // No page of another site can send this field unless it asks before, which is not answered.
    match request.may_read || names_no_site(request.headers) {
        true => Ok(()),
        false => Err(StreamRefusal::Site),
    }
}

/// A viewer, which is counted as long as this exists.
struct ConsoleViewer(Arc<AtomicUsize>);

impl ConsoleViewer {
    fn enter(viewers: &Arc<AtomicUsize>) -> Result<Self, StreamRefusal> {
        let one_more = |count: usize| (count < VIEWERS_MAX).then_some(count + 1);
        // Relaxed: only the number counts.
        let entered = viewers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        let full = StreamRefusal::Viewers("four viewers look already, which is the most");
        entered.map_err(|_| full)?;
        Ok(ConsoleViewer(viewers.clone()))
    }
}

impl Drop for ConsoleViewer {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Mount {
    /// Sets the token that each viewer of the [console](console()) must show, as
    /// `Authorization: Bearer TOKEN`. Others are answered with 401. Without it only clients on this machine
    /// may look. Nobody can show an empty one.
    ///
    /// It is compared in constant time. It is sent as it is, so put a proxy with encryption in front of a
    /// server that other machines reach.
    ///
    /// ```
    /// use greenroom_http::{Server, console};
    ///
    /// let page = console().token("8d1f0a52c46e4b5f");
    /// let server = Server::bind("0.0.0.0:5050").expose().mount(page);
    /// # drop(server);
    /// ```
    pub fn token(mut self, token: &str) -> Self {
        self.console.token = Some(token.into());
        self
    }

    /// Adds a section to the [console](console()): a table of a service, which this function makes for
    /// each refresh. It may block. One of the same name takes its place.
    ///
    /// ```
    /// use greenroom_http::{Section, console};
    ///
    /// let nodes = || Section::new(["node", "links"]).row(["shop".into(), 2.into()]);
    /// let page = console().section("nodes", nodes);
    /// # drop(page);
    /// ```
    pub fn section(
        mut self,
        name: &str,
        make: impl Fn() -> Section + Send + Sync + 'static,
    ) -> Self {
        self.console.sections.retain(|(other, _)| other != name);
        self.console
            .sections
            .push((name.to_owned(), Arc::new(make)));
        self
    }

    /// Sets how often the [console](console()) looks at the runtime: each second by default, and at most
    /// a hundred times a second. A longer time than ten seconds counts as ten: a viewer takes a long silence
    /// for a program that hangs. All that [watch](greenroom::Runtime::watch) the runtime share a walk, at the
    /// shortest of their times.
    pub fn refresh(mut self, time: Duration) -> Self {
        self.console.refresh = time.clamp(Duration::from_millis(10), Duration::from_secs(10));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::console;

    #[test]
    fn a_refresh_comes_before_a_viewer_gives_up() {
        let refresh = |time| console().refresh(time).console.refresh;
        assert_eq!(refresh(Duration::MAX), Duration::from_secs(10));
        assert_eq!(refresh(Duration::ZERO), Duration::from_millis(10));
    }
}
