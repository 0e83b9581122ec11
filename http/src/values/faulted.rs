//! A refusal as JSON: the `Faulted` of layer_cake, and the messages derived from it.

use greenroom::{Refusal, RefusalKind};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answers, to_json as enveloped};

#[derive(Serialize, Deserialize)]
struct Faulted {
    /// The name of the kind.
    #[serde(default)]
    kind: String,
    condition: String,
    #[serde(default)]
    explanation: String,
    #[serde(default)]
    error_code: Option<i64>,
    #[serde(default)]
    exit_status: Option<i32>,
}

/// The kinds and their names. Every other kind has the last name.
const KINDS: &[(RefusalKind, &str)] = &[
    (RefusalKind::Aborted, "Aborted"),
    (RefusalKind::TimedOut, "TimedOut"),
    (RefusalKind::Unavailable, "TemporarilyUnavailable"),
    (RefusalKind::Busy, "Busy"),
    (RefusalKind::Overloaded, "Overloaded"),
    (RefusalKind::OutOfService, "OutOfService"),
    (RefusalKind::ToBeConfirmed, "ToBeConfirmed"),
    (RefusalKind::NotListening, "NotListening"),
    (RefusalKind::NotConnected, "NotConnected"),
    (RefusalKind::NotAccepted, "NotAccepted"),
    (RefusalKind::Fault, "Faulted"),
];

pub(crate) fn to_json(refusal: &Refusal, form: Answers) -> Bytes {
    let named = KINDS.iter().find(|(kind, _)| *kind == refusal.kind());
    let name = named.map_or("Faulted", |(_, name)| name);
    let faulted = Faulted {
        kind: name.to_owned(),
        condition: refusal.condition().to_owned(),
        explanation: refusal.explanation().to_owned(),
        error_code: refusal.error_code(),
        exit_status: refusal.exit_status(),
    };
    let json = enveloped(form, &format!("layer_cake.{name}"), &faulted);
    // A struct of texts and numbers is always JSON.
    json.unwrap_or_default()
}

/// Returns the refusal that was answered with this status: the one in the body, or one that says
/// what the status says.
pub(crate) fn from_json(status: u16, body: &[u8]) -> Refusal {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let (name, value) = match parsed {
        Some(Value::Object(mut object)) => match object.remove("value") {
            Some(Value::Array(parts)) => of_envelope(parts),
            _ => (None, Value::Object(object)),
        },
        other => (None, other.unwrap_or_default()),
    };
    let Ok(faulted) = serde_json::from_value::<Faulted>(value) else {
        return of_status(status, body);
    };
    let name = name.unwrap_or(faulted.kind);
    let own = name.rsplit('.').next().unwrap_or_default();
    let kind = KINDS.iter().find(|(_, name)| *name == own);
    let refusal = match kind {
        Some((kind, _)) if *kind != RefusalKind::Fault => {
            let plain = Refusal::of(*kind, &*faulted.explanation);
            // A kind has one condition, so another one is a part of the explanation.
            match plain.condition() == faulted.condition {
                true => plain,
                false => {
                    let said = Refusal::new(&*faulted.condition, &*faulted.explanation);
                    Refusal::of(*kind, said.to_string())
                }
            }
        }
        _ => Refusal::new(faulted.condition, faulted.explanation),
    };
    let refusal = match faulted.error_code {
        Some(code) => refusal.with_error_code(code),
        None => refusal,
    };
    match faulted.exit_status {
        Some(status) => refusal.with_exit_status(status),
        None => refusal,
    }
}

/// Splits an envelope into the name and the value.
fn of_envelope(parts: Vec<Value>) -> (Option<String>, Value) {
    let mut parts = parts.into_iter();
    let name = parts
        .next()
        .and_then(|name| name.as_str().map(str::to_owned));
    (name, parts.next().unwrap_or_default())
}

fn of_status(status: u16, body: &[u8]) -> Refusal {
    /// The bytes of a foreign answer that are kept.
    const KEPT: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(KEPT)]);
    let refusal = match status {
        503 => Refusal::of(RefusalKind::Unavailable, text),
        504 => Refusal::of(RefusalKind::TimedOut, text),
        _ => Refusal::new(format!("status {status}"), text),
    };
    refusal.with_error_code(status.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_back_as_it_was() {
        let own = Refusal::new("short", "and stout")
            .with_error_code(418)
            .with_exit_status(3);
        let kinds = KINDS.iter().map(|(kind, _)| Refusal::of(*kind, "why"));
        for refusal in kinds.chain([own]) {
            for form in [Answers::Plain, Answers::Envelope] {
                let json = to_json(&refusal, form);
                assert_eq!(from_json(500, &json), refusal);
            }
        }
    }

    #[test]
    fn any_other_answer_becomes_a_refusal_with_its_status() {
        let refusal = from_json(404, b"unknown type \"a\"");
        assert_eq!(refusal.to_string(), "status 404 (unknown type \"a\")");
        assert_eq!(refusal.error_code(), Some(404));
        assert_eq!(from_json(503, b"").kind(), RefusalKind::Unavailable);
        assert_eq!(from_json(504, b"{}").kind(), RefusalKind::TimedOut);
        for odd in [
            "{\"value\":[]}",
            "{\"value\":1}",
            "[1]",
            "null",
            "{\"condition\":1}",
        ] {
            assert_eq!(from_json(500, odd.as_bytes()).error_code(), Some(500));
        }
    }
}
