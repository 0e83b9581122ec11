//! The body of a request, within its limits.

use std::time::{Duration, Instant};

use greenroom::time::timeout;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};

use crate::limits::{Limits, SLOW_START};
use crate::wire::HttpRefusal;

/// Reads a body. The connection cannot go on if that is refused.
pub(super) async fn read(mut body: Incoming, limits: &Limits) -> Result<Bytes, HttpRefusal> {
    const TOO_LARGE: HttpRefusal = HttpRefusal {
        status: 413,
        why: "the body is too large",
        limit: Some("body"),
    };
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limits.body as u64 {
        return Err(TOO_LARGE);
    }
    let begun = Instant::now();
    let (mut first, mut more) = (Bytes::new(), Vec::new());
    loop {
        let received = first.len() + more.len();
        let at_rate = Duration::try_from_secs_f64(received as f64 / limits.body_rate as f64);
        let most = at_rate.map_or(limits.body_time, |time| {
            limits.body_time.min(SLOW_START + time)
        });
        let left = most.saturating_sub(begun.elapsed());
        let frame = match timeout(left, body.frame()).await {
            Err(_) => {
                let is_slow = most < limits.body_time;
                return Err(HttpRefusal {
                    status: 408,
                    why: "the body took too long",
                    limit: Some(if is_slow { "body_rate" } else { "body_time" }),
                });
            }
            Ok(Some(Err(_))) => {
                return Err(HttpRefusal {
                    status: 400,
                    why: "the body is incomplete or malformed",
                    limit: None,
                });
            }
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if received + data.len() > limits.body {
            return Err(TOO_LARGE);
        }
        // Most bodies come in one piece.
        match received {
            0 => first = data,
            _ => more.extend_from_slice(&data),
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    Ok([&first[..], &more].concat().into())
}
