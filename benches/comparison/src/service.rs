//! The calls of a service that keeps the stock of a shop in an actor.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt;

use crate::gate::Gate;

/// How many requests may wait for the actor.
pub const MAILBOX: usize = 2;
/// Of the answer, in bytes.
const MAX_BODY: usize = 1000;

/// Calls the service while its actor is idle, busy, overloaded and dead. `routes` has this limit for
/// the time of an answer.
pub async fn call_routes(gate: &Gate, routes: impl Fn(Duration) -> Router) {
    let patient = routes(Duration::from_secs(60));
    let hasty = routes(Duration::from_millis(20));
    call(&patient, "POST", "/stock/bolt/40").await;
    call(&patient, "POST", "/stock/bolt/2").await;
    call(&patient, "GET", "/stock/bolt").await;
    call(&patient, "GET", "/stock/nut").await;
    println!("The actor is busy.");
    gate.close();
    let before = gate.arrived();
    call(&hasty, "GET", "/stock/bolt").await;
    gate.reached(before + 1).await;
    for _ in 0..MAILBOX {
        call(&hasty, "GET", "/stock/bolt").await;
    }
    call(&patient, "GET", "/stock/bolt").await;
    gate.open();
    gate.reached(before + 1 + MAILBOX).await;
    println!("The actor goes on.");
    call(&patient, "GET", "/stock/bolt").await;
    call(&patient, "POST", &format!("/stock/bolt/{}", u64::MAX)).await;
    call(&patient, "GET", "/stock/bolt").await;
}

/// Calls the service and prints what it answers.
async fn call(routes: &Router, method: &str, path: &str) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap();
    let response = routes.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), MAX_BODY).await.unwrap();
    match status {
        StatusCode::OK => println!("{method} {path}: {}", String::from_utf8_lossy(&body)),
        _ => println!("{method} {path}: {status}"),
    }
}
