//! The variable `GREENROOM_LOG`, which `run` obeys. Each test is a process of its own.

use std::process::Stdio;

use greenroom::{Context, Runtime, spawn};

use super::masked;
use crate::child::{command, finish, is_for};

async fn hello(mut cx: Context<u32>) {
    cx.recv().await;
}

async fn say_hello() {
    let hello = spawn!(hello(_));
    hello.tell(1).unwrap();
    hello.join().await.unwrap();
}

/// Runs `body` in a child with this value of the variable, and returns the lines on its stderr.
fn stderr_of(test: &str, value: Option<&str>, body: fn()) -> Option<Vec<String>> {
    if is_for(test) {
        body();
        return None;
    }
    let mut child = command(test);
    child
        .env_remove("GREENROOM_LOG")
        .envs(value.map(|value| ("GREENROOM_LOG", value)));
    let output = finish(child.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn run_traces_at_the_level_of_the_variable() {
    let test = "trace::environment::run_traces_at_the_level_of_the_variable";
    let body = || greenroom::run(say_hello());
    let Some(lines) = stderr_of(test, Some("OBJECT"), body) else {
        return;
    };
    let lines: Vec<_> = lines.iter().map(|line| masked(line)).collect();
    assert!(lines[0].starts_with("( <00000000>greenroom - Started (workers="));
    assert!(
        lines.contains(&"+ <00000001>hello - Created by <00000000>"),
        "{lines:?}"
    );
    assert!(lines.contains(&"< <00000001>hello - Received u32 from <00000000>"));
    assert_eq!(*lines.last().unwrap(), ") <00000000>greenroom - Ended");
    assert_eq!(stderr_of(test, Some("fault"), body).unwrap(), [""; 0]);
}

#[test]
fn run_complains_about_an_unknown_level_and_traces_nothing() {
    let test = "trace::environment::run_complains_about_an_unknown_level_and_traces_nothing";
    let body = || greenroom::run(say_hello());
    let Some(lines) = stderr_of(test, Some("loud"), body) else {
        return;
    };
    assert_eq!(
        lines,
        [
            "greenroom: GREENROOM_LOG: \"loud\" is none of the levels debug, trace, object, console, \
          warning and fault, so nothing is traced"
        ]
    );
}

#[test]
fn without_the_variable_nothing_is_traced() {
    let test = "trace::environment::without_the_variable_nothing_is_traced";
    let body = || greenroom::run(say_hello());
    let Some(lines) = stderr_of(test, None, body) else {
        return;
    };
    assert_eq!(lines, [""; 0]);
    assert_eq!(stderr_of(test, Some(""), body).unwrap(), [""; 0]);
}

#[test]
fn a_built_runtime_does_not_read_the_variable() {
    let test = "trace::environment::a_built_runtime_does_not_read_the_variable";
    let body = || Runtime::new().unwrap().block_on(say_hello());
    let Some(lines) = stderr_of(test, Some("debug"), body) else {
        return;
    };
    assert_eq!(lines, [""; 0]);
}
