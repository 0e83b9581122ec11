//! The program `greenroom-durable`, run as its users run it.

use std::path::Path;
use std::process::Command;

use greenroom_durable::{Job, Serve, Store, Stored};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Letter(String);

impl Stored for Letter {
    const KIND: &'static str = "letter/1";
}

/// Runs the program. Returns its exit status and what it has written.
fn run(file: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom-durable"));
    let output = command.arg(file).args(words).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), out, error)
}

#[test]
fn it_shows_queues_and_dead_letters_puts_them_again_and_removes_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letters.db");
    greenroom::run(async {
        let store = Store::sqlite(&file).open().await.unwrap();
        let queue = store.queue::<Letter>("letters").open().await.unwrap();
        let workers = queue.serve(Serve::workers(1), |_| async { Err::<(), _>("no stamp") });
        let workers = workers.await.unwrap();
        // It is not tried: its kind is not known.
        let unknown = store.queue::<Other>("letters").open().await.unwrap();
        for id in ["one", "two"] {
            let text = "a \"word\"\n".to_owned();
            let job = Job::new(Other { text }).id(id).key("a\nb");
            unknown.put(job).await.unwrap();
            queue.outcome(id).await.unwrap();
        }
        workers.stop().await;

        // Beside the open store.
        let (code, out, _) = run(&file, &["status"]);
        assert_eq!(code, Some(0));
        let words: Vec<_> = out.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(words, ["0", "0", "0", "2", "0", "0", "0s", "letters"]);
        let (_, out, _) = run(&file, &["dead", "letters"]);
        let kind = "kind \"other/1\", id Some(\"one\"), key Some(\"a\\nb\")";
        let kind = kind.replace("Some(", "").replace(')', "");
        assert!(out.contains(&kind), "{out}");
        assert!(
            out.contains("  its payload cannot be decoded: its kind is"),
            "{out}"
        );
        let payload = r#"{"text":"a \"word\"\n"}"#;
        assert!(out.contains(&format!("\n  {payload}\n")), "{out}");

        assert_eq!(run(&file, &["requeue", "letters", "1"]).1, "1 put again\n");
        assert_eq!(queue.status().await.unwrap().waiting, 1);
        assert_eq!(run(&file, &["drop", "letters", "all"]).1, "1 removed\n");
        assert_eq!(queue.status().await.unwrap().dead, 0);
        let (code, _, error) = run(&file, &["drop", "letters", "1"]);
        assert_eq!(
            (code, &*error),
            (Some(1), "\"letters\" has no dead letter 1\n")
        );
        store.close().await;
    });
    assert_eq!(
        run(&file, &["check"]),
        (
            Some(0),
            "1 jobs, 0 events, 0 damages\n".into(),
            String::new()
        )
    );
}

#[derive(Serialize, Deserialize)]
struct Other {
    text: String,
}

impl Stored for Other {
    const KIND: &'static str = "other/1";
}

#[test]
fn wrong_arguments_and_missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letters.db");
    let (code, _, error) = run(&file, &["status"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("letters.db: No such file"), "{error}");
    let (code, _, error) = run(&file, &[]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("Usage: greenroom-durable FILE status"),
        "{error}"
    );
    assert!(!file.exists());
    // An empty file is not made a store by a command that there is not.
    std::fs::write(&file, "").unwrap();
    for words in [
        &["show"][..],
        &["status", "letters"],
        &["requeue", "letters"],
    ] {
        let (code, _, error) = run(&file, words);
        let expected = format!("there is no command `{}`\nUsage: ", words.join(" "));
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!((code, file.metadata().unwrap().len()), (Some(2), 0));
    }
}

#[test]
fn it_ends_quietly_when_nobody_reads_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letters.db");
    greenroom::run(async { Store::sqlite(&file).open().await.unwrap().close().await });
    for words in ["status", "check", "--help"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom-durable"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.arg(&file).arg(words).stdout(writer).output();
        let output = output.unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    }
}
