//! Lines of the program itself: notes, samples and checks.

use greenroom::policy::Simulated;
use greenroom::trace::{Level, check, note, sample};
use greenroom::{Context, Runtime, actor};

use super::{about, lines_of, traced};

#[test]
fn a_note_has_words_and_values_and_the_sign_of_its_level() {
    let lines = lines_of(async {
        let noting = |_cx: Context<()>| async {
            let (a, n) = (String::from("a"), 1);
            note!(Level::Debug, a, "b", n = n, m = n + 1);
            note!(Level::Trace, "a", "b");
            note!(Level::Object, n = 1);
            note!(Level::Console, "a", "b", n = 1);
            note!(Level::Warning, 1 + 1, "are two",);
            note!(Level::Fault);
        };
        actor(noting).name("noting").spawn().join().await.unwrap();
    });
    assert_eq!(
        about(&lines, "noting")[1..7],
        [
            "_ <1>noting - a b (n=1,m=2)",
            "~ <1>noting - a b",
            "~ <1>noting - n=1",
            "^ <1>noting - a b (n=1)",
            "? <1>noting - 2 are two",
            "! <1>noting - ",
        ]
    );
}

#[test]
fn samples_and_failed_checks_have_signs_of_their_own() {
    let line = line!() + 2;
    let lines = lines_of(async {
        assert!(!check!(1 + 1 == 3, "sum", n = 2));
        assert!(!check!(1 + 1 == 3, "sum", n = 2,));
        assert!(!check!(1 + 1 == 3, "sum",));
        assert!(!check!(1 + 1 == 3));
        assert!(!check!(1 + 1 == 3,));
        assert!(check!(1 + 1 == 2, "sum"));
        assert!(check!(1 + 1 == 2));
        sample!("load", busy = 3, waiting = 14);
    });
    assert_eq!(
        lines,
        [
            format!("= <0> - sum ({}:{line}) (n=2)", file!()),
            format!("= <0> - sum ({}:{}) (n=2)", file!(), line + 1),
            format!("= <0> - sum ({}:{})", file!(), line + 2),
            format!("= <0> - ({}:{})", file!(), line + 3),
            format!("= <0> - ({}:{})", file!(), line + 4),
            "& <0> - load (busy=3,waiting=14)".to_owned(),
        ]
    );
}

#[test]
fn a_note_outside_actors_goes_to_the_current_runtime() {
    let (builder, memory) = traced(Level::Console);
    let runtime = builder.build().unwrap();
    runtime.block_on(async {
        note!(Level::Console, "here");
        greenroom::spawn(async { note!(Level::Console, "in a task") }).await;
    });
    note!(Level::Console, "without a runtime");
    drop(runtime);
    let of_task = "^ <0>a_note_outside_actors_goes_to_the_current_runtime - in a task";
    assert_eq!(memory.lines(), ["^ <0> - here", of_task]);
}

#[test]
fn an_actor_notes_to_its_own_runtime() {
    let (outer, outer_lines) = traced(Level::Console);
    let (inner, inner_lines) = traced(Level::Console);
    let inner = inner.build().unwrap();
    outer.build().unwrap().block_on(async {
        let noting = |_cx: Context<()>| async { note!(Level::Console, "from inside") };
        let noting = actor(noting).name("noting").on(&inner).spawn();
        noting.join().await.unwrap();
    });
    drop(inner);
    assert!(outer_lines.text().is_empty());
    assert_eq!(inner_lines.lines(), ["^ <1>noting - from inside"]);
}

#[test]
fn the_words_of_a_note_that_no_trace_shows_are_not_evaluated() {
    fn never() -> u32 {
        panic!("evaluated")
    }
    let (builder, memory) = traced(Level::Warning);
    builder.build().unwrap().block_on(async {
        note!(Level::Console, never(), n = never());
        sample!("load", n = never());
    });
    Runtime::new().unwrap().block_on(async {
        note!(Level::Fault, never());
        assert!(check!(true, never()));
    });
    assert!(memory.text().is_empty());
}

#[test]
fn a_note_goes_into_the_trace_of_a_simulation_also_without_a_tracer() {
    let run = Simulated::new(1).try_run(async {
        note!(Level::Debug, "tries are left", n = 3);
        panic!("bomb");
    });
    let trace = run.unwrap_err().trace().to_owned();
    assert!(
        trace.contains("main: notes \"tries are left (n=3)\""),
        "{trace}"
    );
}

#[test]
fn labels_name_messages_in_the_trace_of_a_simulation() {
    let run = Simulated::new(1).whole_turns().try_run(async {
        let bomb = |mut cx: Context<u8>| async move {
            cx.recv().await;
            panic!("bomb");
        };
        let bomb = actor(bomb).name("bomb").label(|_| "Fuse").spawn();
        bomb.tell(1).unwrap();
        bomb.join().await.unwrap();
    });
    let trace = run.unwrap_err().trace().to_owned();
    assert!(trace.contains("sends #1 Fuse to \"bomb\" #1"), "{trace}");
}
