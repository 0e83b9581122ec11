//! A generator of protocol lines: a program with four culprits among many actors.

use std::fmt::Write;

/// The first refresh, in Unix time.
const BEGIN_MS: u64 = 1_732_860_000_000;

/// The lines of a connection.
pub struct Lines {
    text: String,
    seq: u64,
    ticks: u64,
}

impl Lines {
    /// Begins with the first line, and a snapshot that follows.
    pub fn new() -> Self {
        let text =
            r#"{"protocol":1,"greenroom":"0.1.0","pid":4711,"features":["counting","waits"]}"#;
        let mut lines = Lines {
            text: format!("{text}\n"),
            seq: 0,
            ticks: 0,
        };
        lines.event("reset", "");
        lines
    }

    /// Adds an event with these further fields.
    pub fn event(&mut self, event: &str, fields: &str) {
        self.seq += 1;
        let comma = if fields.is_empty() { "" } else { "," };
        let seq = self.seq;
        writeln!(
            self.text,
            r#"{{"seq":{seq},"event":"{event}"{comma}{fields}}}"#
        )
        .unwrap();
    }

    /// Adds an actor with these further fields.
    pub fn actor(&mut self, id: u64, name: &str, fields: &str) {
        let text = format!(r#""id":{id},"name":"{name}",{fields}"#);
        self.event("actor", &text);
    }

    /// Adds an actor that waits for a message.
    pub fn idle(&mut self, id: u64, name: &str) {
        let fields = r#""state":"waiting","waits":[{"for":"message"}]"#;
        self.actor(id, name, fields);
    }

    /// Ends a refresh, one second after the last one.
    pub fn tick(&mut self) {
        let at_ms = BEGIN_MS + 1_000 * self.ticks;
        self.ticks += 1;
        self.event("tick", &format!(r#""at_ms":{at_ms}"#));
    }

    /// Ends a refresh, this many seconds after the last one.
    pub fn tick_after(&mut self, seconds: u64) {
        self.ticks += seconds - 1;
        self.tick();
    }

    /// Returns all lines.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The actors of the generated program that have something wrong.
#[derive(Debug, Clone, Copy)]
pub struct Culprits {
    pub stuck: u64,
    pub slow: u64,
    pub growing: u64,
    pub faulting: u64,
}

/// Returns the lines of 12 refreshes of a program with so many actors, and its culprits.
pub fn program(seed: u64, actors: u64) -> (Lines, Culprits) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ids: Vec<u64> = (0..9).map(|_| random.u64(2..=actors)).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 9, "another seed has nine different numbers");
    random.shuffle(&mut ids);
    let culprits = Culprits {
        stuck: ids[0],
        slow: ids[1],
        growing: ids[2],
        faulting: ids[3],
    };
    let askers = &ids[4..];
    let mut lines = Lines::new();
    for id in 1..=actors {
        if !ids.contains(&id) {
            let shard = id % 1_000;
            let fields = format!(
                r#""function":"shop::session","spawned_at":"src/session.rs:{}:5","parent":1,"#,
                10 + id % 7
            ) + &format!(
                r#""state":"waiting","mailbox":0,"highest":{},"messages":{},"turns":{},"#,
                id % 9,
                id * 3,
                id * 2
            ) + &format!(
                r#""sampled":{{"turns":{},"busy_us":{},"longest_us":{}}},"addresses":2,"#,
                id / 32,
                id / 8,
                id % 300
            ) + &format!(
                r#""handle":true,"thread":"workers","waits":[{{"for":"message"}}],"key":"{id}","groups":["shard {shard}"]"#
            );
            lines.actor(id, "session", &fields);
        }
    }
    for at in 0..12 {
        refresh(&mut lines, &culprits, askers, at, actors);
    }
    (lines, culprits)
}

/// Adds what a refresh sends of the culprits, and of those that wait for them.
fn refresh(lines: &mut Lines, culprits: &Culprits, askers: &[u64], at: u64, actors: u64) {
    if at == 0 {
        let vault = r#""function":"shop::vault","state":"waiting","mailbox":12,"capacity":64,"turns":90,
            "messages":400,"waits":[{"for":"noted","what":"a lock"}]"#;
        lines.actor(culprits.stuck, "vault", &vault.replace('\n', ""));
        for asker in askers {
            let fields = format!(
                r#""function":"shop::teller","state":"waiting","waits":[{{"for":"answer","of":{}}}]"#,
                culprits.stuck
            );
            lines.actor(*asker, "teller", &fields);
        }
    }
    let report = format!(
        r#""function":"shop::report","state":"running","turns":{},"messages":{},"sampled":{{"turns":2,"busy_us":2400000,"longest_us":1300000}}"#,
        20 + at,
        20 + at
    );
    lines.actor(culprits.slow, "report", &report);
    let audit = format!(
        r#""function":"shop::audit","state":"ready","mailbox":{0},"highest":{0},"turns":{1},"messages":{1}"#,
        500 + 120 * at,
        900 + 40 * at
    );
    lines.actor(culprits.growing, "audit", &audit);
    let parser = format!(
        r#""function":"shop::parser","state":"waiting","turns":{},"restarts":{},"fault":"bad digit in line {}","waits":[{{"for":"message"}}]"#,
        30 + at,
        3 + at,
        17 + at
    );
    lines.actor(culprits.faulting, "parser", &parser);
    let runtime = format!(
        r#""uptime_ms":{},"workers":[{{"turns":{},"steals":3,"parks":70,"queued":1}},{{"turns":{},"steals":4,"parks":50,"queued":0,"runs":{{"id":{},"for_us":1200000}}}}],"injector":0,"queued":1,"tasks":12,"actors":{actors},"blocking":{{"threads":2,"idle":1,"waiting":0}},"timers":3,"messages":{}"#,
        753_000 + 1_000 * at,
        5_000 * (at + 1) + at * at * 30,
        2_000 * (at + 1),
        culprits.slow,
        90_000 * (at + 1) + 2_000 * at * at
    );
    lines.event("runtime", &runtime);
    if at == 0 {
        let nodes = r#""name":"nodes","columns":["node","state","links"],"rows":[["shop","up",3],["bank","down",0]]"#;
        lines.event("section", nodes);
    }
    lines.tick();
}
