//! The load of wrk, a program that must be installed.

use std::fs;
use std::process::Command;

use crate::Outcome;
use crate::load::Load;
use crate::process::{Serving, processor_time};
use crate::servers::{ACTORS, Kind};

/// Lets each request go to another actor.
const IN_TURNS: &str = "local n = 0
function request()
  n = (n + 1) % ACTORS
  return wrk.format('GET', '/Hello' .. n)
end
";

/// Measures a fresh server with one thread and 64 connections of wrk, for two seconds.
pub fn measure(kind: Kind) -> Outcome<Load> {
    let server = Serving::start(kind)?;
    let url = format!("http://127.0.0.1:{}{}", server.port, kind.path(0));
    let script = std::env::temp_dir().join(format!("http-bench-{}.lua", server.pid()));
    let warm_up = Command::new("wrk")
        .args(["-t1", "-c64", "-d1s", &url])
        .output();
    warm_up.map_err(|error| format!("wrk: {error}"))?;
    let mut command = Command::new("wrk");
    command.args(["--latency", "-t1", "-c64", "-d2s"]);
    if matches!(kind, Kind::Actors | Kind::Tasks) {
        fs::write(&script, IN_TURNS.replace("ACTORS", &ACTORS.to_string()))?;
        command.arg("-s").arg(&script);
    }
    let processor = processor_time(server.pid())?;
    let output = command.arg(&url).output()?;
    let after = processor_time(server.pid())?;
    let _ = fs::remove_file(&script);
    let text = String::from_utf8(output.stdout)?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(text.into());
    }
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in"));
    let requests: f64 = requests.ok_or("no requests")?.0.parse()?;
    let after_word = |word: &str| {
        let found = text.lines().find_map(|line| line.trim().strip_prefix(word));
        found
            .map(str::trim)
            .ok_or_else(|| format!("no {word}: {text}"))
    };
    Ok(Load {
        rate: after_word("Requests/sec:")?.parse()?,
        p99: microseconds(after_word("99%")?)?,
        processor: (after - processor) as f64 / requests / 1e3,
    })
}

/// Reads a time such as `1.60ms`.
fn microseconds(text: &str) -> Outcome<f64> {
    let unit = text.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let number: f64 = text[..text.len() - unit.len()].parse()?;
    match unit {
        "us" => Ok(number),
        "ms" => Ok(number * 1e3),
        "s" => Ok(number * 1e6),
        _ => Err(format!("wrk told {text:?}").into()),
    }
}
