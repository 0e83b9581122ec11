//! Events and spans for the subscribers of `tracing`, with the feature `tracing`.

mod propagation;

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use greenroom::policy::Simulated;
use greenroom::trace::{Level, Tracing, note};
use greenroom::{Context, Runtime, actor};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// A subscriber that keeps everything as text.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<String>>>);

/// The fields of an event or a span, as text.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "id" && field.name() != "to" {
            let _ = write!(self.0, " {field}={value:?}");
        }
    }
}

impl Keeps {
    fn keep(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields)) {
        assert_eq!(metadata.target(), "greenroom");
        let kind = if metadata.is_span() {
            metadata.name()
        } else {
            "event"
        };
        let mut fields = Fields(format!("{kind} {}", metadata.level()));
        record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}

impl Subscriber for Keeps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.keep(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.keep(event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, _span: &Id) {
        self.0.lock().unwrap().push("enter".into());
    }

    fn exit(&self, _span: &Id) {
        self.0.lock().unwrap().push("exit".into());
    }
}

#[test]
fn events_have_levels_and_fields_and_turns_are_spans() {
    let keeps = Keeps::default();
    // All of a simulation runs on this thread, which has the subscriber.
    tracing::subscriber::with_default(keeps.clone(), || {
        let policy = Simulated::new(1).whole_turns();
        let runtime = Runtime::builder().policy(policy).tracer(Tracing).build();
        runtime.unwrap().block_on(async {
            async fn receives(mut cx: Context<u32>) {
                cx.recv().await.unwrap();
                cx.trace_state("READY");
                note!(Level::Console, "noted");
                note!(Level::Debug, "not shown");
                note!(Level::Warning, "warned");
                panic!("bomb");
            }
            // Its name is that of the function, in its span as in its events.
            let receives = actor(receives).spawn();
            receives.tell(7).unwrap();
            receives.join().await.unwrap_err();
        });
    });
    let kept = keeps.0.lock().unwrap();
    let ready = " actor=\"receives\" state=\"READY\"";
    let expected = [
        "event DEBUG message=Started (workers=1) actor=\"greenroom\" sign=\"(\"".into(),
        "event DEBUG message=Created by <00000000> actor=\"receives\" sign=\"+\" from=0".into(),
        "sent".into(),
        "turn DEBUG actor=\"receives\"".into(),
        "enter".into(),
        "event DEBUG message=Received u32 from <00000000> actor=\"receives\" sign=\"<\" \
         name=\"u32\" from=0"
            .into(),
        format!("event INFO message=noted{ready} sign=\"^\""),
        format!("event WARN message=warned{ready} sign=\"?\""),
        format!("event ERROR message=Fault: panicked: bomb{ready} sign=\"!\""),
        format!("event DEBUG message=Destroyed{ready} sign=\"X\""),
        "exit".into(),
        "event DEBUG message=Ended actor=\"greenroom\" sign=\")\"".into(),
    ];
    assert_eq!(kept.len(), expected.len(), "{kept:#?}");
    for (kept, expected) in kept.iter().zip(expected) {
        match expected.as_str() {
            // Its text has the id of the actor.
            "sent" => assert!(
                kept.starts_with("event DEBUG message=Sent u32 to <"),
                "{kept}"
            ),
            expected => assert_eq!(kept, expected),
        }
    }
}
