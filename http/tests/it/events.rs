//! Events: why a connection has ended, and what a trace reports.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use greenroom::trace::{Event, Level, Tracer};
use greenroom::{Context, Runtime};
use greenroom_http::{CloseReason, HttpEvent, Limits};

use crate::support::{Served, patient, served, served_on};

/// A server, and what its connections ended with.
struct Observed {
    served: Served,
    received: Receiver<CloseReason>,
    _runtime: Runtime,
}

fn observed(limits: Limits) -> Observed {
    let (sender, received) = channel();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let observer = greenroom::actor(move |mut cx: Context<HttpEvent>| async move {
        while let Some(event) = cx.recv().await {
            if let HttpEvent::Closed { why, .. } = event {
                sender.send(why).unwrap();
            }
        }
    });
    let observer = observer.on(&runtime).spawn();
    Observed {
        served: served(|builder, _| builder.events(&observer.address()).limits(limits)),
        received,
        _runtime: runtime,
    }
}

#[test]
fn events_tell_why_a_connection_has_failed() {
    let observed = observed(Limits {
        write_time: Duration::from_millis(50),
        ..patient()
    });
    let mut client = observed.served.client();
    // The answer has far more bytes than the buffers of both sockets.
    client.send("GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let text = "error writing a body to connection: timed out".to_owned();
    assert_eq!(observed.received.recv().unwrap(), CloseReason::Failed(text));
}

#[test]
fn events_tell_which_refusal_has_ended_a_connection() {
    let observed = observed(Limits {
        body: 10,
        ..patient()
    });
    let of_body = |length: usize| {
        format!("POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
    };
    for (request, status) in [
        ("GET /Xy HTTP/1.1\r\n\r\n".to_owned(), 400),
        (of_body(11), 413),
    ] {
        let mut client = observed.served.client();
        client.send(request);
        assert_eq!(client.response().status, status);
        drop(client);
        assert_eq!(
            observed.received.recv().unwrap(),
            CloseReason::Refused(status)
        );
    }
    // What follows the last request was not refused.
    let mut client = observed.served.client();
    client.send("GET /Xy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n\r\n");
    assert_eq!(client.response().status, 200);
    assert_eq!(observed.received.recv().unwrap(), CloseReason::Done);
}

/// Keeps what is noted at the levels trace and warning.
struct Notes(Sender<String>);

impl Tracer for Notes {
    fn event(&self, event: &Event<'_>) {
        if matches!(event.kind().level(), Level::Trace | Level::Warning) {
            let (sign, name, kind) = (event.kind().sign(), event.name(), event.kind());
            let _ = self.0.send(format!("{sign} {name} - {kind}"));
        }
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Trace
    }
}

#[test]
fn a_trace_tells_why_an_answer_cannot_be_encoded() {
    let (sender, received) = channel();
    let runtime = Runtime::builder().workers(1).tracer(Notes(sender));
    let served = served_on(runtime, |it, _| it);
    assert_eq!(served.get("/Nan?how=x").status, 500);
    let line =
        "? http connection - An answer to \"Nan\" cannot be encoded (JSON has no number NaN)";
    assert!(received.iter().any(|noted| noted == line));
}

#[test]
fn a_trace_tells_where_a_server_listens_and_whom_it_accepts() {
    let (sender, received) = channel();
    let served = served_on(
        Runtime::builder().workers(1).tracer(Notes(sender)),
        |it, _| it,
    );
    let address = served.server.local_addr();
    let listening = format!("~ http listener - Listening on \"{address}\"");
    assert_eq!(received.recv().unwrap(), listening);
    for _ in 0..2 {
        let mut client = served.client();
        assert_eq!(client.get("/Xy").status, 200);
        let peer = client.0.local_addr().unwrap();
        let accepted = format!("~ http listener - Accepted \"{peer}\"");
        assert_eq!(received.recv().unwrap(), accepted);
        let answered = "~ http connection - GET /Xy (status=200)".to_owned();
        assert_eq!(received.recv().unwrap(), answered);
    }
}
