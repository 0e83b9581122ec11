//! The queues and their dead letters, for people: the page `/jobs`, and a section of the console.
//!
//! The page needs nothing from elsewhere and has no script. Each text in it is escaped. A dead letter is put
//! again by a form, which the server takes from its own pages only.

use std::fmt::Write;

use futures_lite::future::block_on;
use greenroom::{Context, Refusal, RefusalKind, Reply, spawn};
use greenroom_http::{HttpResponse, Mount, Section, SectionCell, ServerBuilder, escape};
use serde::Deserialize;

use crate::dead::DeadJob;
use crate::error::StoreError;
use crate::status::QueueStatus;
use crate::store::Store;

/// The dead letters of a queue that are shown at most.
const DEAD_SHOWN: usize = 100;

/// The characters of a payload or a reason that are shown at most.
const CHARACTERS: usize = 300;

/// Adds the page `/jobs` to a server, and the type `RequeueJob`, with which it puts dead letters again.
///
/// The page shows each queue, and the first 100 dead letters of each with their payloads: it is for those
/// who may see them. `RequeueJob` has the fields `queue` and `number`, and is posted only. As any type of a
/// server, it refuses pages of other sites.
///
/// ```
/// use greenroom_durable::{Store, with_jobs};
/// use greenroom_http::Server;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("shop.db");
/// greenroom::run(async {
///     let store = Store::sqlite(file).open().await?;
///     let server = with_jobs(Server::bind("127.0.0.1:0"), &store).listen().await?;
///     server.stop().await;
///     store.close().await;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap();
/// ```
///
/// # Panics
/// If no runtime is current.
pub fn with_jobs(server: ServerBuilder, store: &Store) -> ServerBuilder {
    let own = store.clone();
    let page = Mount::page("/jobs", move || match block_on(overview(&own)) {
        Ok(queues) => respond(page(&queues)),
        Err(error) => HttpResponse::new(503, error.to_string()),
    });
    let own = store.clone();
    let requeuing = spawn!(requeue(_, own), name = "requeue");
    let make = |job: RequeueJob, reply| (job, reply);
    let server = server
        .mount(page)
        .on("RequeueJob", &requeuing.address(), make);
    server.post_only()
}

/// Returns what makes a section of the [console](greenroom_http::console()), with a row for each queue of
/// the store. If the store cannot be read, the section says why.
///
/// ```
/// use greenroom_durable::{Store, jobs_section};
/// use greenroom_http::{Server, console};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("shop.db");
/// greenroom::run(async {
///     let store = Store::sqlite(file).open().await?;
///     let page = console().section("jobs", jobs_section(&store));
///     let server = Server::bind("127.0.0.1:0").mount(page).listen().await?;
///     server.stop().await;
///     store.close().await;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap();
/// ```
pub fn jobs_section(store: &Store) -> impl Fn() -> Section + Send + Sync + use<> {
    let store = store.clone();
    move || match block_on(store.statuses()) {
        Ok(queues) => table(&queues),
        Err(error) => Section::new(["error"]).row([error.to_string().into()]),
    }
}

/// Returns a table with a row for each queue.
fn table<'a>(queues: impl IntoIterator<Item = &'a QueueStatus>) -> Section {
    let heads = "queue waiting running late dead done minute oldest";
    queues
        .into_iter()
        .fold(Section::new(heads.split(' ')), |table, status| {
            let QueueStatus {
                waiting,
                running,
                late,
                dead,
                done,
                rate,
                ..
            } = *status;
            let paused = if status.is_paused { " (paused)" } else { "" };
            let oldest = status.oldest.map(|oldest| format!("{oldest:.0?}"));
            let numbers = [waiting, running, late, dead, done, rate].map(SectionCell::from);
            table.row(
                [format!("{}{paused}", status.name).into()]
                    .into_iter()
                    .chain(numbers)
                    .chain([oldest.unwrap_or("-".to_owned()).into()]),
            )
        })
}

/// Which dead letter is to be put again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequeueJob {
    queue: String,
    number: i64,
}

async fn requeue(mut cx: Context<(RequeueJob, Reply<&'static str>)>, store: Store) {
    while let Some((job, reply)) = cx.recv().await {
        match store.requeue(&job.queue, job.number).await {
            Ok(()) => reply.send("put again"),
            Err(error) => reply.refuse(Refusal::of(RefusalKind::Fault, error.to_string())),
        }
    }
}

async fn overview(store: &Store) -> Result<Vec<(QueueStatus, Vec<DeadJob>)>, StoreError> {
    let mut queues = Vec::new();
    for status in store.statuses().await? {
        let dead = store.dead_jobs(&status.name, 0, DEAD_SHOWN).await?;
        queues.push((status, dead));
    }
    Ok(queues)
}

/// Answers with a page that a browser shows as it is, and whose forms go to this server alone.
fn respond(page: String) -> HttpResponse {
    HttpResponse::new(200, page)
        .header("content-type", "text/html; charset=utf-8")
        .header("cache-control", "no-store")
        .header("referrer-policy", "same-origin")
        .header(
            "content-security-policy",
            "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        )
}

fn page(queues: &[(QueueStatus, Vec<DeadJob>)]) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Jobs</title></head>\
         <body><h1>Jobs</h1><table border=\"1\" cellpadding=\"4\"><tr>",
    );
    let Section { columns, rows, .. } = table(queues.iter().map(|(status, _)| status));
    columns.iter().for_each(|head| cell(&mut page, "th", head));
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        row.iter()
            .for_each(|it| cell(&mut page, "td", &it.to_string()));
        page.push_str("</tr>\n");
    }
    page.push_str("</table>");
    for (status, dead) in queues.iter().filter(|(_, dead)| !dead.is_empty()) {
        let _ = write!(page, "<h2>Dead letters of ");
        escape(&mut page, &status.name);
        page.push_str("</h2><table border=\"1\" cellpadding=\"4\">");
        dead.iter()
            .for_each(|job| row(&mut page, &status.name, job));
        page.push_str("</table>");
    }
    page.push_str("</body></html>\n");
    page
}

fn row(page: &mut String, queue: &str, job: &DeadJob) {
    page.push_str("<tr>");
    cell(page, "td", &job.number.to_string());
    cell(page, "td", job.id.as_deref().unwrap_or("-"));
    cell(page, "td", &job.kind);
    cell(page, "td", &format!("{} attempts", job.attempts));
    cell(page, "td", &job.reason);
    cell(page, "td", &String::from_utf8_lossy(&job.payload));
    page.push_str("<td><form method=\"post\" action=\"/RequeueJob\">");
    let _ = write!(
        page,
        "<input type=\"hidden\" name=\"number\" value=\"{}\">",
        job.number
    );
    page.push_str("<input type=\"hidden\" name=\"queue\" value=\"");
    escape(page, queue);
    page.push_str("\"><button>put again</button></form></td></tr>\n");
}

fn cell(page: &mut String, tag: &str, text: &str) {
    let _ = write!(page, "<{tag}>");
    let shown: String = text.chars().take(CHARACTERS).collect();
    escape(page, &shown);
    let _ = write!(page, "</{tag}>");
}
