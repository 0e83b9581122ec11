//! A request on its way to a server, and the reply that its answer belongs to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use greenroom::{Refusal, Reply};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::values::answer::{Answers, Envelope};
use crate::values::{Strict, faulted, from_value};

/// What a name has only as `%XX`: all but letters, digits, slashes and the signs that mean nothing.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

pub(super) trait Exchange: Send {
    /// Returns whether the answer is still awaited.
    fn is_wanted(&self) -> bool;

    /// Returns the path of the request, which begins with this one.
    fn path(&self, before: &str) -> String;

    /// Returns the body of the request, or a reason why it has none.
    fn body(&self, form: Answers) -> Result<Vec<u8>, Refusal>;

    /// Gives an answer back: what is in the body, or the refusal that it is.
    fn answer(self: Box<Self>, status: u16, body: &[u8], form: Answers);

    fn refuse(self: Box<Self>, why: Refusal);
}

pub(super) struct TypedExchange<Q, R> {
    pub(super) name: Arc<str>,
    pub(super) question: Q,
    pub(super) reply: Reply<R>,
}

impl<Q, R> Exchange for TypedExchange<Q, R>
where
    Q: Serialize + Send,
    R: DeserializeOwned + Send,
{
    fn is_wanted(&self) -> bool {
        self.reply.is_wanted()
    }

    fn path(&self, before: &str) -> String {
        let name = utf8_percent_encode(&self.name, ESCAPED);
        format!("{before}{name}")
    }

    fn body(&self, form: Answers) -> Result<Vec<u8>, Refusal> {
        let value = Strict(&self.question, form.maps());
        let encode = || match form {
            Answers::Plain => serde_json::to_vec(&value),
            Answers::Envelope | Answers::LayerCake => serde_json::to_vec(&Envelope { value }),
        };
        let malformed = |why| Refusal::new("malformed request", why);
        // The `Serialize` of the program may panic.
        match catch_unwind(AssertUnwindSafe(encode)) {
            Ok(encoded) => encoded.map_err(|error| malformed(error.to_string())),
            Err(_) => Err(malformed("it cannot be encoded".to_owned())),
        }
    }

    fn answer(self: Box<Self>, status: u16, body: &[u8], form: Answers) {
        if !(200..300).contains(&status) {
            return self.reply.refuse(faulted::from_json(status, body));
        }
        // So may its `Deserialize`.
        match catch_unwind(AssertUnwindSafe(|| decode(body, form))) {
            Ok(Ok(answer)) => self.reply.send(answer),
            Ok(Err(why)) => self.reply.refuse(Refusal::new("malformed answer", why)),
            Err(_) => {
                let why = "it cannot be decoded";
                self.reply.refuse(Refusal::new("malformed answer", why));
            }
        }
    }

    fn refuse(self: Box<Self>, why: Refusal) {
        self.reply.refuse(why);
    }
}

/// Reads an answer, which may be in an envelope. A body without bytes is `null`.
fn decode<R: DeserializeOwned>(body: &[u8], form: Answers) -> Result<R, String> {
    let body = if body.is_empty() { b"null" } else { body };
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let read = |value: &Value| from_value::<R>(value, form.maps());
    let inner = match body
        .get("value")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([Value::String(_), inner, Value::Array(_)]) => read(inner).ok(),
        _ => None,
    };
    match inner {
        Some(answer) => Ok(answer),
        None => read(&body),
    }
}
