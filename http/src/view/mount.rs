//! A page of a server, at a path of its own.

use std::fmt;
use std::sync::Arc;

use futures_lite::Stream;
use greenroom::unblock;
use hyper::Response;
use hyper::body::Bytes;
use prometheus_client::collector::Collector;

use super::console::ConsoleSettings;
use super::service::{Service, ServiceReader};
use super::stream::StreamPage;
use crate::counts::Numbers;
use crate::message::{Body, HttpResponse};

/// A page for [`ServerBuilder::mount`](crate::ServerBuilder::mount), which
/// [`metrics`](crate::metrics), [`actors_page`](crate::actors_page) or [`page`](Mount::page) makes.
#[derive(Clone)]
#[must_use = "a page does nothing until it is mounted"]
pub struct Mount {
    path: &'static str,
    respond: Arc<Respond>,
    /// The page, if it is always the same and can be sent.
    fixed: Option<Arc<Response<Bytes>>>,
    /// The page, if it goes on.
    stream: Option<Arc<StreamPage>>,
    /// The services that a program adds to the page, by their names.
    pub(super) services: Vec<(String, Arc<ServiceReader>)>,
    /// The collectors that a program adds to the page.
    pub(super) collectors: Vec<Arc<dyn Collector>>,
    /// What a program sets for the console.
    pub(super) console: ConsoleSettings,
}

/// Makes a page for the query of a request, with the numbers of its server.
type Respond = dyn Fn(&Mount, &str, Numbers) -> HttpResponse + Send + Sync;

impl Mount {
    pub(super) fn new(
        path: &'static str,
        respond: impl Fn(&Mount, &str, Numbers) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Mount {
            path,
            respond: Arc::new(respond),
            fixed: None,
            stream: None,
            services: Vec::new(),
            collectors: Vec::new(),
            console: ConsoleSettings::default(),
        }
    }

    /// Creates a page of the program, such as `/jobs`, which this function makes for each request. The
    /// function may block: it is called on a blocking thread.
    ///
    /// ```
    /// use greenroom_http::{HttpResponse, Mount, Server};
    ///
    /// let page = Mount::page("/version", || HttpResponse::new(200, "1.2.3"));
    /// let server = Server::bind("127.0.0.1:0").mount(page);
    /// # drop(server);
    /// ```
    pub fn page(
        path: &'static str,
        respond: impl Fn() -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Mount::new(path, move |_, _, _| respond())
    }

    /// Creates a page that is always the same.
    pub(crate) fn fixed(path: &'static str, page: HttpResponse) -> Self {
        let fixed = page.clone().complete().ok().map(Arc::new);
        let mount = Mount::new(path, move |_, _, _| page.clone());
        Mount { fixed, ..mount }
    }

    /// Creates a page whose body goes on, such as `/events`: it is sent in chunks, as they come. The
    /// function makes a stream for each viewer. It must not block, nor must the stream. `media` is the
    /// type of the page.
    ///
    /// A page of another site cannot read it. The connection of a viewer counts as any other, and so do
    /// the bytes that the viewer has not taken. There is no lower rate while nothing waits to be sent.
    /// A viewer that does not take what waits is cut within [`write_time`](crate::Limits::write_time).
    /// The stream is not asked for more meanwhile. It ends when the server
    /// [stops](crate::Server::stop).
    ///
    /// ```
    /// use futures_lite::stream;
    /// use greenroom::time::sleep;
    /// use greenroom_http::{Mount, Server};
    /// use std::time::Duration;
    ///
    /// let ticks = || {
    ///     stream::unfold(0, |tick| async move {
    ///         sleep(Duration::from_secs(1)).await;
    ///         Some((format!("data: {tick}\n\n"), tick + 1))
    ///     })
    /// };
    /// let page = Mount::stream("/ticks", "text/event-stream", ticks);
    /// let server = Server::bind("127.0.0.1:0").mount(page);
    /// # drop(server);
    /// ```
    pub fn stream<S>(
        path: &'static str,
        media: &str,
        begin: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item: Into<Body>> + Send + 'static,
    {
        Mount::streams(path, StreamPage::of_program(media, begin))
    }

    pub(super) fn streams(path: &'static str, page: StreamPage) -> Self {
        let mount = Mount::new(path, |_, _, _| HttpResponse::new(500, "it goes on"));
        Mount {
            stream: Some(Arc::new(page)),
            ..mount
        }
    }

    /// Returns the page, if it goes on.
    pub(crate) fn stream_page(&self) -> Option<&StreamPage> {
        self.stream.as_deref()
    }

    /// Returns the page, if it need not be made.
    pub(crate) fn fixed_page(&self) -> Option<Response<Bytes>> {
        self.fixed.as_deref().cloned()
    }

    /// Adds the numbers of a service to the [console](crate::console()), under this name. Those of a
    /// [spool](greenroom::spool) are also in the [metrics](crate::metrics).
    ///
    /// The page holds a handle of the service, as a clone does.
    ///
    /// ```
    /// use greenroom::market::Market;
    /// use greenroom_http::console;
    ///
    /// greenroom::run(async {
    ///     let prints = Market::<&str>::builder().build().unwrap();
    ///     let page = console().service("prints", &prints);
    ///     # drop(page);
    ///     prints.drain().await;
    /// });
    /// ```
    pub fn service(mut self, name: &str, service: &impl Service) -> Self {
        self.services
            .push((name.to_owned(), service.reader().into()));
        self
    }

    /// Adds numbers of the program to the [metrics](crate::metrics).
    pub fn collector(mut self, collector: impl Collector) -> Self {
        self.collectors.push(Arc::new(collector));
        self
    }

    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// Makes the page, on a thread that may take long.
    pub(crate) async fn respond(&self, query: String, numbers: Numbers) -> HttpResponse {
        let own = self.clone();
        unblock(move || (own.respond)(&own, &query, numbers)).await
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mount").field(&self.path).finish()
    }
}
