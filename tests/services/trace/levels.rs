//! What each level shows.

use greenroom::trace::{Level, Lines, check, note, sample};
use greenroom::{Context, actor};

use super::traced;

const LEVELS: [(Level, &str); 6] = [
    (Level::Debug, "debug"),
    (Level::Trace, "trace"),
    (Level::Object, "object"),
    (Level::Console, "console"),
    (Level::Warning, "warning"),
    (Level::Fault, "fault"),
];

#[test]
fn a_level_shows_its_own_events_and_those_above() {
    // The signs of each level, in the order of the lines, the runtime's and the actor's included.
    let all = "(+_~&~^?=!!X)";
    let shown = [
        (Level::Debug, all),
        (Level::Trace, "(+~&~^?=!!X)"),
        (Level::Object, "(+~^?=!!X)"),
        (Level::Console, "^?=!!"),
        (Level::Warning, "?=!!"),
        (Level::Fault, "!!"),
    ];
    for (level, shown) in shown {
        let (builder, memory) = traced(level);
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let noting = |_cx: Context<()>| async {
                note!(Level::Debug, "debug");
                note!(Level::Trace, "trace");
                sample!("sample", n = 1);
                note!(Level::Object, "object");
                note!(Level::Console, "console");
                note!(Level::Warning, "warning");
                check!(false, "check");
                note!(Level::Fault, "fault");
                panic!("bomb");
            };
            actor(noting)
                .name("noting")
                .spawn()
                .join()
                .await
                .unwrap_err();
        });
        drop(runtime);
        let signs: String = memory.lines().iter().map(|line| &line[..1]).collect();
        assert_eq!(signs, shown, "{level}");
    }
}

#[test]
fn levels_are_in_order_and_have_names() {
    for (index, (level, name)) in LEVELS.into_iter().enumerate() {
        assert_eq!(level.to_string(), name);
        assert_eq!(name.parse(), Ok(level));
        assert_eq!(name.to_uppercase().parse(), Ok(level));
        assert!(LEVELS[..index].iter().all(|(lower, _)| *lower < level));
    }
}

#[test]
fn a_text_that_is_no_level_is_an_error_that_names_all() {
    for wrong in ["", "loud", "debug ", "debugs", "0"] {
        let error = wrong.parse::<Level>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{wrong:?} is none")), "{error}");
        assert!(
            LEVELS.iter().all(|(_, name)| error.contains(name)),
            "{error}"
        );
    }
}

#[test]
fn lines_say_what_they_are() {
    let lines = format!("{:?}", Lines::to(std::io::sink(), Level::Warning));
    assert_eq!(lines, "Lines { level: Warning, dropped: 0, .. }");
}
