//! A refusal as JSON: plain, or as layer_cake's `Faulted` and the messages derived from it.

use greenroom::{Refusal, RefusalKind};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answers, to_json as enveloped};

#[derive(Serialize, Deserialize)]
struct Faulted {
    /// The name of the kind, which an envelope has beside the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
    condition: String,
    /// Some programs have none.
    #[serde(default)]
    explanation: Option<String>,
    #[serde(default)]
    error_code: Option<i64>,
    #[serde(default)]
    exit_status: Option<i32>,
    /// The services that are not there, which a message of layer_cake names.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    unavailable: Option<[String; 0]>,
}

/// The kinds, their names, and the names of layer_cake's types. Every other kind has the last name.
const KINDS: &[(RefusalKind, &str, &str)] = &[
    (
        RefusalKind::Aborted,
        "Aborted",
        "layer_cake.point_runtime.Aborted",
    ),
    (
        RefusalKind::TimedOut,
        "TimedOut",
        "layer_cake.point_runtime.TimedOut",
    ),
    (
        RefusalKind::Unavailable,
        "Unavailable",
        "layer_cake.point_runtime.TemporarilyUnavailable",
    ),
    (RefusalKind::Busy, "Busy", "layer_cake.point_runtime.Busy"),
    (
        RefusalKind::Overloaded,
        "Overloaded",
        "layer_cake.point_runtime.Overloaded",
    ),
    (
        RefusalKind::OutOfService,
        "OutOfService",
        "layer_cake.point_runtime.OutOfService",
    ),
    (
        RefusalKind::ToBeConfirmed,
        "ToBeConfirmed",
        "layer_cake.point_runtime.ToBeConfirmed",
    ),
    (
        RefusalKind::NotListening,
        "NotListening",
        "layer_cake.listen_connect.NotListening",
    ),
    (
        RefusalKind::NotConnected,
        "NotConnected",
        "layer_cake.listen_connect.NotConnected",
    ),
    (
        RefusalKind::NotAccepted,
        "NotAccepted",
        "layer_cake.listen_connect.NotAccepted",
    ),
    (
        RefusalKind::Fault,
        "Fault",
        "layer_cake.point_runtime.Faulted",
    ),
];

pub(crate) fn to_json(refusal: &Refusal, form: Answers) -> Bytes {
    let kind = refusal.kind();
    let named = KINDS.iter().find(|(other, ..)| *other == kind);
    let (_, own, foreign) = named.unwrap_or(&KINDS[KINDS.len() - 1]);
    let is_plain = form == Answers::Plain;
    let faulted = Faulted {
        kind: if is_plain {
            (*own).to_owned()
        } else {
            String::new()
        },
        condition: refusal.condition().to_owned(),
        explanation: Some(refusal.explanation().to_owned()),
        error_code: refusal.error_code(),
        exit_status: refusal.exit_status(),
        unavailable: (!is_plain && kind == RefusalKind::Unavailable).then_some([]),
    };
    let json = enveloped(form, foreign, &faulted);
    // A struct of texts and numbers is always JSON.
    json.unwrap_or_default()
}

/// Returns the kind that is called so, or whose type of layer_cake has this name, in any module.
fn kind_of(name: &str) -> RefusalKind {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let own = last(name);
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|(_, word, foreign)| own == *word || own == last(foreign));
    kind.map_or(RefusalKind::Fault, |(kind, ..)| *kind)
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
    let explanation = faulted.explanation.unwrap_or_default();
    let refusal = match kind_of(&name.unwrap_or(faulted.kind)) {
        RefusalKind::Fault => Refusal::new(faulted.condition, explanation),
        kind => {
            let plain = Refusal::of(kind, &*explanation);
            // A kind has one condition, so another one is a part of the explanation.
            match plain.condition() == faulted.condition {
                true => plain,
                false => {
                    let said = Refusal::new(&*faulted.condition, explanation);
                    Refusal::of(kind, said.to_string())
                }
            }
        }
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
        let kinds = KINDS.iter().map(|(kind, ..)| Refusal::of(*kind, "why"));
        for refusal in kinds.chain([own]) {
            for form in [Answers::Plain, Answers::Envelope, Answers::LayerCake] {
                let json = to_json(&refusal, form);
                assert_eq!(from_json(500, &json), refusal);
            }
        }
    }

    #[test]
    fn a_refusal_has_the_names_of_its_form() {
        let refusal = Refusal::of(RefusalKind::Unavailable, "soon");
        let plain = to_json(&refusal, Answers::Plain);
        assert!(plain.starts_with(br#"{"kind":"Unavailable","condition":"#));
        let envelope = String::from_utf8(to_json(&refusal, Answers::LayerCake).to_vec()).unwrap();
        let name = "layer_cake.point_runtime.TemporarilyUnavailable";
        assert!(envelope.starts_with(&format!("{{\"value\":[\"{name}\",{{\"condition\":")));
        assert!(
            envelope.ends_with(",\"unavailable\":[]},[]]}"),
            "{envelope}"
        );
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
