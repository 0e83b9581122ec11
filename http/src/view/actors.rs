//! `/actors`: the workers and the actors, for people.
//!
//! The page needs nothing from elsewhere and has no script. Each text in it is escaped.

mod chart;
mod figures;
mod look;
mod page;
mod query;
mod rows;
mod single;
mod tree;

use std::fmt::Write;

use greenroom::Runtime;

use super::mount::Mount;
use crate::message::HttpResponse;
use look::SharedLook;
use query::PageQuery;

/// The seconds between two pages of a reader.
const REFRESH: u64 = 2;

const STYLE: &str = include_str!("actors/page.css");

/// What the page may do: nothing but have its own style, and send its own form.
///
/// It names the style by the SHA-256 of its text.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-d5iE67w/yUVLxz676WTkBunFeTsExMyXI1xWpJKq85E='; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// Returns the page `/actors`: charts of the last minutes, a row for each actor, the workers, and the last faults.
///
/// It shows at most 1000 rows and refreshes itself every 2 s. The query of its URL says which rows, and
/// in which order. What is unknown there is ignored:
///
/// | field | shows |
/// |---|---|
/// | `sort=messages` | the rows by a column, also `id`, `name`, `state`, `mailbox`, `highest`, `wait`, `rate`, `turns`, `busy`, `longest`, `restarts` and `displaced` |
/// | `order=asc`, `order=desc` | the least or the most first |
/// | `filter=cart` | the actors that have this text in their name |
/// | `group=1` | one row for all actors of a name, function or type |
/// | `tree` | each actor below its parent, instead of groups |
/// | `id=17` | one actor, with its parent and children, what it waits for, and its last faults |
/// | `pause=1` | the page without refreshing it, with a field for the filter |
///
/// Without a `sort`, the busiest come first. Rates and shares are those since the page was last made,
/// for any reader. Readers within half a second get the same look at the runtime. The charts have the
/// last 5 minutes, as far as the page was asked for.
///
/// Without an [observer](greenroom::Builder::observer), times are samples, and the page says so. So it
/// does if the runtime [counts nothing](greenroom::Builder::counting).
///
/// ```
/// use greenroom_http::{Server, actors_page};
///
/// let server = Server::bind("127.0.0.1:0").mount(actors_page());
/// # drop(server);
/// ```
pub fn actors_page() -> Mount {
    let shared = SharedLook::default();
    Mount::new("/actors", move |_, query, _| {
        let Some(runtime) = Runtime::try_current() else {
            return HttpResponse::new(503, "there is no runtime");
        };
        respond(&runtime, &shared, &PageQuery::of(query))
    })
}

/// Answers with a page that a browser shows as it is, and that asks for nothing else.
fn respond(runtime: &Runtime, shared: &SharedLook, query: &PageQuery) -> HttpResponse {
    let look = shared.get(runtime);
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Actors</title><style>",
    );
    page.push_str(STYLE);
    page.push_str("</style></head><body>");
    let mut status = 200;
    match query.id {
        None => {
            page::write_actors(&mut page, &look, query);
            single::write_faults(&mut page, runtime, None);
        }
        Some(id) => {
            if !single::write_actor(&mut page, &look, runtime, id) {
                status = 404;
                let _ = write!(
                    page,
                    "<h1>There is no actor {id}</h1><p>It has ended, or is of another runtime. \
                     <a href=\"?\">All actors</a></p>"
                );
                single::write_history(&mut page, runtime, id);
            }
        }
    }
    page.push_str("</body></html>\n");
    let response = HttpResponse::new(status, page)
        .header("content-type", "text/html; charset=utf-8")
        .header("cache-control", "no-store")
        .header("referrer-policy", "no-referrer")
        .header("content-security-policy", POLICY);
    match query.is_paused || status != 200 {
        true => response,
        false => response.header("refresh", &REFRESH.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::{POLICY, STYLE};

    #[test]
    fn the_policy_allows_the_style() {
        let digest = STANDARD.encode(Sha256::digest(STYLE));
        assert!(
            POLICY.contains(&format!("style-src 'sha256-{digest}';")),
            "{digest}"
        );
    }
}
