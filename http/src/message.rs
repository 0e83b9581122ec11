//! Requests and responses that an actor handles itself.

use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Method, StatusCode, Uri};

/// A request for no type that the server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The URI as it was sent.
    pub uri: Uri,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response with full control.
///
/// ```
/// use greenroom_http::HttpResponse;
///
/// let page = HttpResponse::new(200, "hello").header("cache-control", "no-store");
/// assert_eq!(page.status, 200);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status, from 200 to 599.
    pub status: StatusCode,
    /// The header fields. The length, the date and the server are added; what is said there of the
    /// length and of the connection is ignored.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// A text. It is sent as `text/plain` unless the header says otherwise.
    Text(String),
    /// Bytes, of which the header must say what they are.
    Bytes(Bytes),
}

impl HttpResponse {
    /// Creates a response without header fields. A status that is no number from 200 to 599 becomes
    /// 500.
    pub fn new(status: u16, body: impl Into<Body>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        HttpResponse {
            status,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    /// Sets a header field. A value with control characters becomes an empty one.
    ///
    /// # Panics
    /// If `name` has capital letters, or is no name of a header field.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value);
        let value = value.unwrap_or(HeaderValue::from_static(""));
        self.headers.insert(name, value);
        self
    }

    /// Completes the response, or returns why it cannot be sent.
    pub(crate) fn complete(mut self) -> Result<hyper::Response<Bytes>, &'static str> {
        for framing in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            self.headers.remove(framing);
        }
        // A client must not have to guess what bytes are.
        let has_type = self.headers.contains_key(CONTENT_TYPE);
        let is_known = has_type || matches!(&self.body, Body::Bytes(bytes) if bytes.is_empty());
        let is_final = (200..600).contains(&self.status.as_u16());
        let body = match self.body {
            _ if !is_final => return Err("the response has no final status"),
            Body::Bytes(_) if !is_known => return Err("the response has no content type"),
            Body::Bytes(bytes) => bytes,
            Body::Text(text) => {
                let plain = HeaderValue::from_static("text/plain; charset=utf-8");
                self.headers.entry(CONTENT_TYPE).or_insert(plain);
                Bytes::from(text)
            }
        };
        let mut response = hyper::Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}

impl Body {
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Body::Text(text) => text.into(),
            Body::Bytes(bytes) => bytes,
        }
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::Text(text)
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Body::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Body::Bytes(bytes.into())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, HttpResponse};

    #[test]
    fn a_text_has_a_type_and_bytes_must_say_theirs() {
        let text = HttpResponse::new(201, "a").complete().unwrap();
        assert_eq!(text.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!((text.status().as_u16(), &text.body()[..]), (201, &b"a"[..]));
        let html = HttpResponse::new(200, "<p>").header("content-type", "text/html");
        let html = html.complete().unwrap();
        assert_eq!(html.headers()["content-type"], "text/html");
        let bytes = HttpResponse::new(200, vec![1]);
        let why = "the response has no content type";
        assert_eq!(bytes.clone().complete().unwrap_err(), why);
        let bytes = bytes.header("content-type", "image/png").complete();
        assert_eq!(bytes.unwrap().status(), 200);
        let empty = HttpResponse::new(204, Bytes::new()).complete();
        assert_eq!(empty.unwrap().status(), 204);
        let why = "the response has no final status";
        assert_eq!(HttpResponse::new(101, "").complete().unwrap_err(), why);
        // What is no status at all is one from the beginning.
        assert_eq!(HttpResponse::new(7, "").complete().unwrap().status(), 500);
    }
}
