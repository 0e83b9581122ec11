//! What is stored: values with a kind, encoded as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreProblem;
use crate::limits::Limits;

/// A type that can be stored: a job, an event, or the state of a journal.
///
/// [`KIND`](Stored::KIND) names the type and its version, and is stored with each value. A value is
/// encoded as JSON, so a new field with a default needs no new kind. Other changes do: give the
/// type another `KIND`, and let [`upgrade`](Stored::upgrade) decode the older ones.
///
/// ```
/// use greenroom_durable::Stored;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Resize {
///     file: String,
///     width: u32,
/// }
///
/// impl Stored for Resize {
///     const KIND: &'static str = "resize/2";
///
///     // The first version was only the name of the file.
///     fn upgrade(kind: &str, bytes: &[u8]) -> Option<Self> {
///         let file = serde_json::from_slice(bytes).ok().filter(|_| kind == "resize/1")?;
///         Some(Resize { file, width: 320 })
///     }
/// }
/// ```
pub trait Stored: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the type, and its version.
    const KIND: &'static str;

    /// Makes a value of one of an older kind, or returns `None` if it is not known.
    fn upgrade(kind: &str, bytes: &[u8]) -> Option<Self> {
        let _ = (kind, bytes);
        None
    }
}

/// Encodes a value, if it is not too large.
pub(crate) fn encode<T: Serialize>(value: &T, limits: &Limits) -> Result<Vec<u8>, StoreProblem> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|error| StoreProblem::Unencodable(error.to_string()))?;
    within("payload", bytes.len(), limits.payload)?;
    Ok(bytes)
}

/// Decodes a value of this kind or an older one.
pub(crate) fn decode<T: Stored>(kind: &str, bytes: &[u8]) -> Result<T, String> {
    if kind == T::KIND {
        return serde_json::from_slice(bytes).map_err(|error| error.to_string());
    }
    T::upgrade(kind, bytes).ok_or_else(|| format!("its kind is {kind:?}, not {:?}", T::KIND))
}

/// Checks the size of something.
pub(crate) fn within(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreProblem> {
    match bytes <= limit {
        true => Ok(()),
        false => Err(StoreProblem::TooLarge { what, bytes, limit }),
    }
}
