//! The page of actors in a browser. `GREENROOM_BROWSER` names it: Chromium, in some version.
//! Without it there is nothing to look at, and the tests of `view` see the bytes alone.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use greenroom::Context;
use greenroom_http::{HttpResponse, actors_page, metrics};

use crate::support::{Served, number, served, until};

/// What a browser does with an address, with a profile of its own.
struct Browser {
    program: String,
    folder: PathBuf,
    /// The size of its window, and what else it is told.
    options: Vec<String>,
}

impl Browser {
    fn new(name: &str) -> Option<Browser> {
        let program = std::env::var("GREENROOM_BROWSER").ok()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // What is left of an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let options = vec!["--window-size=1000,900".to_owned()];
        Some(Browser {
            program,
            folder,
            options,
        })
    }

    /// Returns a command that looks at the page of actors.
    fn command(&self, what: &str, served: &Served) -> Command {
        self.command_at(what, &page_of(served, ""))
    }

    /// Returns a command that looks at a page.
    fn command_at(&self, what: &str, page: &str) -> Command {
        let profile = format!("--user-data-dir={}", self.folder.join("profile").display());
        let mut command = Command::new(&self.program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // What a page may not do is written.
            "--enable-logging=stderr",
        ]);
        // The page comes last: what is behind it is no option.
        command.args(&self.options).args([&*profile, what, page]);
        command.stdin(Stdio::null());
        command
    }

    /// Looks at the page once, and returns what is printed.
    fn look(&self, what: &str, served: &Served) -> String {
        self.look_at(what, served, "")
    }

    /// Looks at the page with a query.
    fn look_at(&self, what: &str, served: &Served, query: &str) -> String {
        let mut command = self.command_at(what, &page_of(served, query));
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert!(!errors.contains("Content Security Policy"), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Returns the address of the page of actors with a query.
fn page_of(served: &Served, query: &str) -> String {
    format!("http://{}/actors{query}", served.server.local_addr())
}

/// A browser that stays open, and is killed at the end.
struct Open(Child);

impl Drop for Open {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns how many pages the server has sent.
fn pages(served: &Served) -> f64 {
    let metrics = served.get("/metrics").body;
    let line = "greenroom_http_requests_total{type=\"\",status=\"200\"}";
    number(&metrics, line).unwrap_or(0.0)
}

async fn idle(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

#[test]
fn a_browser_shows_the_name_of_an_actor_and_does_not_obey_it() {
    let Some(browser) = Browser::new("actors") else {
        eprintln!("GREENROOM_BROWSER is not set");
        return;
    };
    let served = served(|builder, _| builder.mount(actors_page()));
    let evil = [
        "<script>document.title = 'obeyed'</script>",
        "</td></table><img src=x onerror=\"document.title='obeyed'\">",
        "<svg onload=\"document.title='obeyed'\">",
        "<meta http-equiv=refresh content=\"0; url=/obeyed\">",
    ];
    let actors = evil.map(|name| {
        greenroom::actor(idle)
            .name(name)
            .on(&served.runtime)
            .spawn()
    });
    let page = browser.look("--dump-dom", &served);
    assert!(page.contains("<title>Actors</title>"), "{page}");
    for name in evil {
        // A text of the page has quotes as they are.
        let shown = name.replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&format!("<td>{shown}</td>")), "{page}");
    }
    for element in ["<script", "<img", "<svg onload", "<meta http-equiv"] {
        assert!(!page.contains(element), "{element}: {page}");
    }
    assert_eq!(page.matches("<svg ").count(), 2, "{page}");
    // So is one in the page of its actor, and in the row of a group.
    for query in [format!("?id={}", actors[0].id()), "?group=1".to_owned()] {
        let page = browser.look_at("--dump-dom", &served, &query);
        assert!(page.contains("obeyed"), "{page}");
        for element in ["<script", "<img", "<svg onload", "<meta http-equiv"] {
            assert!(!page.contains(element), "{element}: {page}");
        }
    }
    let picture = browser.folder.join("actors.png");
    browser.look(&format!("--screenshot={}", picture.display()), &served);
    let picture = std::fs::read(picture).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    drop(actors);
}

#[test]
fn a_browser_shows_the_page_narrow_or_wide_and_dark_or_light() {
    let Some(mut browser) = Browser::new("looks") else {
        eprintln!("GREENROOM_BROWSER is not set");
        return;
    };
    let served = served(|builder, _| builder.mount(actors_page()));
    let mut pictures = Vec::new();
    for width in [400, 1200] {
        for scheme in ["light", "dark"] {
            let picture = browser.folder.join(format!("{width}-{scheme}.png"));
            let what = format!("--screenshot={}", picture.display());
            browser.options = vec![format!("--window-size={width},900")];
            if scheme == "dark" {
                browser.options.push("--force-dark-mode".to_owned());
            }
            browser.look(&what, &served);
            let picture = std::fs::read(picture).unwrap();
            // The width is the first number of the first chunk.
            let shown = u32::from_be_bytes(picture[16..20].try_into().unwrap());
            assert_eq!(shown, width);
            pictures.push(picture);
        }
    }
    assert!(pictures[0] != pictures[1] && pictures[2] != pictures[3]);
}

#[test]
fn the_page_of_actors_refreshes_itself_in_a_browser() {
    let Some(browser) = Browser::new("refresh") else {
        eprintln!("GREENROOM_BROWSER is not set");
        return;
    };
    let served = served(|builder, _| builder.mount(actors_page()).mount(metrics()));
    let mut command = browser.command("--remote-debugging-port=0", &served);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _open = Open(command.spawn().unwrap());
    let mut asked = 0.0;
    until("the page was sent three times", || {
        // This asks for a page, too.
        asked += 1.0;
        pages(&served) - asked >= 2.0
    });
}

/// A page that tries to reach an actor at this address in each way that needs no permission.
fn page_of_another_site(at: &str) -> String {
    format!(
        "<!doctype html><img src='{at}?x=1'><script src='{at}?x=2'></script>\
         <iframe src='{at}?x=3'></iframe><iframe name='answer'></iframe>\
         <form id='form' method='post' action='{at}' target='answer'><input name='x' value='4'></form>\
         <script>fetch('{at}?x=5', {{ mode: 'no-cors' }}); fetch('{at}?x=6').catch(() => {{}});\
         document.getElementById('form').submit();</script>"
    )
}

#[test]
fn a_page_of_another_site_reaches_no_actor_in_a_browser() {
    let Some(browser) = Browser::new("cross") else {
        eprintln!("GREENROOM_BROWSER is not set");
        return;
    };
    let target = served(|builder, _| builder.mount(metrics()));
    let port = target.server.local_addr().port();
    // The same machine by another name is another site.
    let page = page_of_another_site(&format!("http://127.0.0.1:{port}/Xy"));
    let page = HttpResponse::new(200, page).header("content-type", "text/html");
    let site = served(|builder, _| builder.index(page));
    let site = format!("http://localhost:{}/", site.server.local_addr().port());
    let mut command = browser.command_at("--remote-debugging-port=0", &site);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _open = Open(command.spawn().unwrap());
    let refused = |cause: &str| {
        let line = format!("greenroom_http_refused_callers_total{{cause=\"{cause}\"}}");
        number(&target.get("/metrics").body, &line).unwrap_or(0.0)
    };
    // An image, a script, a frame and a fetch say their site; a form and a fetch with CORS their origin.
    until("all six were refused", || {
        refused("site") >= 4.0 && refused("origin") >= 2.0
    });
    assert_eq!(target.messages(), 0);
}
