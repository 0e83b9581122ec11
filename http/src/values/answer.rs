//! An answer as JSON: plain, or in an envelope, whose form is that of layer_cake.

use std::cell::Cell;

use hyper::body::Bytes;
use serde::Serialize;

use super::strict::{MapForm, Strict};

/// Which form answers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Answers {
    /// The answer itself as JSON.
    #[default]
    Plain,
    /// `{"value":["type",answer,[]]}`. The type's name is that of
    /// [`name`](crate::ServerBuilder::name), or it is derived from the type.
    Envelope,
    /// The envelope as programs on layer_cake have it: maps are lists of pairs, such as
    /// `[["a",1]]`, in requests as well. What the server itself refuses is a line of text.
    LayerCake,
}

impl Answers {
    /// Returns how maps are written, and may be read.
    pub(crate) fn maps(self) -> MapForm {
        match self {
            Answers::Plain | Answers::Envelope => MapForm::Object,
            Answers::LayerCake => MapForm::Pairs,
        }
    }
}

/// The room that a thread keeps, in bytes.
const KEPT: usize = 64 * 1024;

thread_local! {
    /// Where an answer is written until its length is known.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Returns a value as JSON, or an error if it has a number that JSON does not have.
pub(crate) fn to_json<T: Serialize>(
    form: Answers,
    name: &str,
    value: &T,
) -> serde_json::Result<Bytes> {
    let (mut room, value) = (ROOM.take(), Strict(value, form.maps()));
    match form {
        Answers::Plain => serde_json::to_writer(&mut room, &value)?,
        Answers::Envelope | Answers::LayerCake => {
            let value = (name, value, [(); 0]);
            serde_json::to_writer(&mut room, &Envelope { value })?;
        }
    }
    // A large room goes with its answer, and a small one stays with the thread.
    if room.capacity() > KEPT {
        return Ok(room.into());
    }
    let json = Bytes::copy_from_slice(&room);
    room.clear();
    ROOM.set(room);
    Ok(json)
}

/// An envelope: of a request with the value alone, and of an answer with the type's name, the value
/// and the pointers in it.
#[derive(Serialize)]
pub(crate) struct Envelope<T> {
    pub(crate) value: T,
}

#[cfg(test)]
mod tests {
    use super::{Answers, to_json};

    #[test]
    fn an_envelope_has_name_value_and_pointers() {
        let table = vec![vec![0.5, 1.0], vec![]];
        let json = to_json(Answers::Envelope, "vector<vector<float8>>", &table).unwrap();
        let text = r#"{"value":["vector<vector<float8>>",[[0.5,1.0],[]],[]]}"#;
        assert_eq!(json, text);
        assert_eq!(
            to_json(Answers::Plain, "", &table).unwrap(),
            "[[0.5,1.0],[]]"
        );
        let map = std::collections::BTreeMap::from([("a", 1)]);
        let json = to_json(Answers::LayerCake, "map<unicode,integer8>", &map).unwrap();
        assert_eq!(json, r#"{"value":["map<unicode,integer8>",[["a",1]],[]]}"#);
    }
}
