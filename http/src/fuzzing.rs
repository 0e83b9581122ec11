//! What is done with bytes of any client, without sockets: for fuzzers, and for their corpora.
//!
//! Each function panics if something is wrong.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::limits::Limits;
use crate::values::{DecodeProblem, MapForm, decode_part, faulted, fields, from_fields, from_json};
use crate::wire::{Framing, HostRule};

/// A type with a member of each kind.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Kinds {
    _number: i64,
    _large: u128,
    _float: f64,
    _yes: bool,
    _sign: char,
    _text: String,
    _choice: Choice,
    _list: Vec<u8>,
    _pair: (i8, String),
    _map: BTreeMap<String, u8>,
    _maybe: Option<Box<Kinds>>,
    _address: Option<std::net::IpAddr>,
}

#[derive(Deserialize, Default)]
#[expect(dead_code, reason = "it is read from bytes, and never looked at")]
enum Choice {
    #[default]
    _One,
    _Two(u8),
    _Three {
        _inner: bool,
    },
}

/// A type whose members take any value.
#[derive(Deserialize)]
struct Flat {
    #[serde(flatten)]
    _kinds: Kinds,
    #[serde(flatten)]
    _others: BTreeMap<String, Tagged>,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is read from bytes, and never looked at")]
enum Tagged {
    Numbers(BTreeMap<u8, f64>),
    Text(String),
    Maybe(Option<bool>),
}

/// Checks that a problem is a short line, whatever the input is.
fn check<T>(read: Result<T, DecodeProblem>) {
    if let Err(problem) = read {
        let text = problem.to_string();
        assert!(text.len() < 2000, "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}

/// Reads a query or a form.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check(decode_part(&text));
    let fields = fields(&text);
    for maps in [MapForm::Object, MapForm::Pairs] {
        let rules = Limits::default().of_json(maps);
        check(from_fields::<Kinds>("Kinds", rules, &fields));
        check(from_fields::<BTreeMap<String, String>>(
            "Map", rules, &fields,
        ));
        check(from_fields::<()>("Unit", rules, &fields));
        check(from_fields::<Choice>("Choice", rules, &fields));
        check(from_fields::<Flat>("Flat", rules, &fields));
    }
}

/// Reads a body of JSON, and an answer that is none.
pub fn envelope(bytes: &[u8]) {
    for maps in [MapForm::Object, MapForm::Pairs] {
        let rules = Limits::default().of_json(maps);
        check(from_json::<Kinds>("Kinds", rules, bytes));
        check(from_json::<Vec<Choice>>("Choices", rules, bytes));
        check(from_json::<Flat>("Flat", rules, bytes));
    }
    let refusal = faulted::from_json(500, bytes);
    assert!(!refusal.condition().is_empty());
}

/// Finds the requests of a connection: the same ones however the bytes are cut.
pub fn framing(bytes: &[u8]) {
    let whole = pass(bytes, bytes.len().max(1));
    for step in [1, 7, 64] {
        assert_eq!(pass(bytes, step), whole, "in pieces of {step}");
    }
}

/// Returns where heads begin and end, and the status with which reading ends.
fn pass(bytes: &[u8], step: usize) -> (Vec<usize>, Option<u16>) {
    let limits = Limits::default();
    let mut framing = Framing::new(&limits, HostRule::Required);
    let (mut heads, mut buffer, mut before) = (Vec::new(), Vec::new(), 0);
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            let is_head = framing.is_in_head();
            let passed = match framing.pass(&buffer) {
                Ok(0) => break,
                Ok(passed) => passed,
                Err(refused) => return (heads, Some(refused.status)),
            };
            buffer.drain(..passed);
            if is_head {
                heads.extend([before, before + passed]);
            }
            before += passed;
        }
    }
    (heads, None)
}

#[cfg(test)]
mod tests {
    /// Runs a function on each file of the corpus of its name.
    fn replay(name: &str, run: fn(&[u8])) {
        let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut files = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            run(&std::fs::read(file.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 10, "{folder} has {files} files");
    }

    #[test]
    fn what_fuzzers_have_found_is_read() {
        replay("query", super::query);
        replay("envelope", super::envelope);
        replay("framing", super::framing);
    }
}
