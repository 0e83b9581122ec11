//! The example `timeline`: what its recorder keeps, and what its picture shows of that.
//!
//! The pictures are read with an XML parser, which refuses those that are not well-formed.

use std::time::Duration;

use greenroom::{Context, Runtime, WorkerStats, actor, yield_now};
use roxmltree::{Document, Node};

use crate::support::{WATCH, within};

use columns::{Scale, merge, parked_gaps};
use picture::render;
use record::{Actor, Lane, Recorder, Recording, Sample, THREAD_NAME, TURNS_MAX, Turn};

#[path = "../../examples/timeline/columns.rs"]
mod columns;
#[path = "../../examples/timeline/counters.rs"]
mod counters;
#[path = "../../examples/timeline/picture.rs"]
mod picture;
#[path = "../../examples/timeline/record.rs"]
mod record;
#[path = "../../examples/timeline/svg.rs"]
mod svg;
#[path = "../../examples/timeline/tables.rs"]
mod tables;

const SVG: &str = "http://www.w3.org/2000/svg";

/// A plot of a thousand pixels, a millisecond each.
const SCALE: Scale = Scale {
    width: 1000,
    span: ms(1000),
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn turn(start: Duration, took: Duration, actor: usize) -> Turn {
    Turn { start, took, actor }
}

fn lane(turns: Vec<Turn>) -> Lane {
    Lane {
        name: "worker".to_owned(),
        busy: turns.iter().map(|turn| turn.took).sum(),
        turns,
        left_out: 0,
    }
}

/// Returns a sample of one worker.
fn sample(at: Duration, steals: u64, parks: u64, wake_ups: u64) -> Sample {
    let mut stats = WorkerStats::default();
    (stats.steals, stats.parks, stats.wake_ups) = (steals, parks, wake_ups);
    Sample {
        at,
        queued: 0,
        workers: vec![stats],
    }
}

/// Returns a recording of a second, with the sums that its turns have.
fn recording(names: &[&str], lanes: Vec<Lane>, samples: Vec<Sample>) -> Recording {
    let names = names.iter().map(|name| Actor {
        name: (*name).to_owned(),
        ..Actor::default()
    });
    let mut actors: Vec<_> = names.collect();
    for turn in lanes.iter().flat_map(|lane| &lane.turns) {
        actors[turn.actor].runs += 1;
        actors[turn.actor].busy += turn.took;
    }
    Recording {
        took: ms(1000),
        lanes,
        actors,
        samples,
    }
}

/// Returns the text of each element of this name.
fn texts(picture: &str, name: &str) -> Vec<String> {
    let document = Document::parse(picture).unwrap();
    let is_wanted = |node: &Node| node.has_tag_name((SVG, name));
    let found = document.descendants().filter(is_wanted);
    found
        .map(|node| node.text().unwrap_or_default().to_owned())
        .collect()
}

fn count(all: &[String], wanted: &str) -> usize {
    all.iter().filter(|text| *text == wanted).count()
}

#[test]
fn empty_recording_is_a_well_formed_picture() {
    let empty = render(&Recording::default(), "nothing");
    assert_eq!(texts(&empty, "title"), ["nothing"]);
    let idle = render(&recording(&[], vec![lane(vec![])], vec![]), "idle");
    assert_eq!(count(&texts(&idle, "text"), "0 turns, 0 % busy"), 1);
}

#[test]
fn long_turn_has_a_box_with_its_name_and_times() {
    let turns = vec![turn(ms(100), ms(250), 0)];
    let picture = render(&recording(&["merger"], vec![lane(turns)], vec![]), "one");
    assert_eq!(
        count(&texts(&picture, "title"), "merger: 250 ms from 100 ms"),
        1
    );
    let texts = texts(&picture, "text");
    // The legend, the bars, the longest turns.
    assert_eq!(count(&texts, "merger"), 3, "{texts:?}");
    assert_eq!(count(&texts, "1 turns, 25 % busy"), 1, "{texts:?}");
}

#[test]
fn names_are_escaped() {
    let name = "<a href=\"x\">&\u{1}'";
    let turns = vec![turn(ms(0), ms(1000), 0)];
    let picture = render(&recording(&[name], vec![lane(turns)], vec![]), name);
    let shown = name.replace('\u{1}', "\u{fffd}");
    let titles = texts(&picture, "title");
    assert_eq!(titles, [shown.clone(), format!("{shown}: 1 s from 0")]);
    assert!(texts(&picture, "text").contains(&shown));
}

#[test]
fn turns_shorter_than_a_box_are_merged_by_pixel() {
    // Half of every millisecond, in turns of two actors.
    let turns = (0..10_000).map(|i| turn(us(100 * i), us(50), i as usize % 2));
    let turns: Vec<_> = turns.collect();
    let merged = merge(&lane(turns.clone()), &[0, 1], SCALE, 1);
    assert!(merged.boxes.is_empty());
    for column in merged.columns {
        assert!((column[0] - 0.25).abs() < 1e-6, "{column:?}");
        assert!((column[1] - 0.25).abs() < 1e-6, "{column:?}");
    }
    let recording = recording(&["a", "b"], vec![lane(turns)], vec![]);
    let picture = render(&recording, "merged");
    assert!(picture.len() < 60_000, "{} bytes", picture.len());
}

#[test]
fn turn_beyond_the_end_stays_within_the_plot() {
    let turns = vec![turn(us(999_900), us(500), 0), turn(ms(990), ms(500), 0)];
    let merged = merge(&lane(turns.clone()), &[0], SCALE, 1);
    assert_eq!(merged.boxes.len(), 1);
    assert!((merged.columns[999][0] - 0.1).abs() < 1e-6);
    let picture = render(&recording(&["late"], vec![lane(turns)], vec![]), "late");
    Document::parse(&picture).unwrap();
}

#[test]
fn gap_is_parked_if_a_sample_found_the_worker_asleep_in_it() {
    let turns = vec![
        turn(ms(100), ms(100), 0),
        turn(ms(300), ms(100), 0),
        turn(us(400_500), us(500), 0),
    ];
    let asleep = |at| sample(at, 0, 1, 0);
    let samples = vec![
        asleep(ms(50)),
        asleep(ms(150)),
        sample(ms(250), 0, 1, 1),
        asleep(us(400_200)),
        asleep(ms(900)),
    ];
    let mut lane = lane(turns);
    let before = (ms(0), ms(100));
    // Awake in the gap of the middle; the next gap is narrower than a pixel.
    let gaps = parked_gaps(&lane, 0, &samples, SCALE);
    assert_eq!(gaps, [before, (ms(401), ms(1000))]);
    lane.left_out = 1;
    assert_eq!(parked_gaps(&lane, 0, &samples, SCALE), [before]);
    assert_eq!(parked_gaps(&lane, 1, &samples, SCALE), []);
}

#[test]
fn bars_show_by_how_much_counters_grew() {
    let samples = (1..=30).map(|i| sample(ms(33 * i), i / 10 * 3, 0, 0));
    let samples = samples.collect();
    let picture = render(&recording(&[], vec![lane(vec![])], samples), "steals");
    let titles = texts(&picture, "title");
    let bars = ["from 300 ms", "from 600 ms", "from 900 ms"];
    let bars = bars.map(|from| format!("{from}: 3 steals; worker 0: 3"));
    assert_eq!(titles[1..], bars, "{titles:?}");
}

#[test]
fn time_without_samples_is_grey_in_each_row_of_counters() {
    let fields = |samples: Vec<Sample>| {
        let picture = render(&recording(&[], vec![], samples), "samples");
        let document = Document::parse(&picture).unwrap();
        let paths = document
            .descendants()
            .filter(|node| node.has_tag_name((SVG, "path")));
        paths
            .filter(|path| path.attribute("class") == Some("lane"))
            .count()
    };
    let all: Vec<_> = (0..30).map(|i| sample(ms(33 * i), 0, 0, 0)).collect();
    assert_eq!(fields(all.clone()), 0);
    assert_eq!(fields([&all[..10], &all[20..]].concat()), 3);
}

#[test]
fn actors_whose_names_differ_by_a_number_are_of_one_kind() {
    let names: Vec<_> = (0..200)
        .map(|i| format!("kind-{} {i}", ["a", "b"][i % 2]))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let others = ["c", "d", "e", "f", "g", "h", "i", "j"];
    let all = [&names[..], &others].concat();
    let turns = (0..all.len()).map(|i| turn(ms(4 * i as u64), ms(4) - us(i as u64), i));
    let picture = render(
        &recording(&all, vec![lane(turns.collect())], vec![]),
        "kinds",
    );
    let texts = texts(&picture, "text");
    for kind in ["kind-a", "kind-b", "others"] {
        assert_eq!(count(&texts, kind), 1, "{texts:?}");
    }
    // The last of the others' times are the shortest, so these have no colour of their own.
    assert_eq!(
        [count(&texts, "i"), count(&texts, "j")],
        [0, 0],
        "{texts:?}"
    );
}

#[test]
fn turns_that_were_left_out_are_told() {
    let mut lane = lane(vec![turn(ms(0), ms(500), 0)]);
    lane.left_out = 7;
    let picture = render(&recording(&["a"], vec![lane], vec![]), "full");
    let text = texts(&picture, "text");
    assert!(
        text.iter()
            .any(|text| text.starts_with("7 turns found no room"))
    );
    assert_eq!(
        count(&texts(&picture, "title"), "7 turns that found no room"),
        1
    );
    assert_eq!(count(&text, "8 turns, 50 % busy"), 1);
}

#[test]
fn picture_of_many_workers_actors_and_samples_is_below_a_megabyte() {
    let names: Vec<_> = (0..100)
        .map(|i| format!("a kind of actor {i} or so"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    // As many boxes as there can be, and a few turns too short for one in each gap.
    let turns = |worker: u64| {
        let turns = (0..120).flat_map(move |i| {
            let start = us(8300 * i);
            let short = (0..3).map(move |j| turn(start + us(8100 + 50 * j), us(40), j as usize));
            short.chain([turn(start, us(8000), (worker + i) as usize % 100)])
        });
        lane(turns.collect())
    };
    let samples = (0..4096).map(|i| {
        let mut sample = sample(us(240 * i), i, i + 1, i);
        sample.workers = vec![sample.workers[0]; 64];
        sample
    });
    let lanes = (0..64).map(turns).collect();
    let picture = render(&recording(&names, lanes, samples.collect()), "many");
    assert!(picture.len() < 1_000_000, "{} bytes", picture.len());
    assert!(texts(&picture, "text").contains(&"32 more workers are not drawn".to_owned()));
}

/// Records what such a runtime does until no work is left.
fn record(workers: usize, start: impl FnOnce(&Runtime)) -> (Recording, Runtime) {
    let recorder = Recorder::new(workers);
    let runtime = Runtime::builder().workers(workers).thread_name(THREAD_NAME);
    let runtime = runtime.observer(recorder.clone()).build().unwrap();
    let sampler = recorder.sample(&runtime);
    start(&runtime);
    runtime.run_until_quiescent();
    (recorder.finish(sampler), runtime)
}

async fn yields(_cx: Context<()>, times: usize) {
    for _ in 0..times {
        yield_now().await;
    }
}

#[test]
fn recorder_counts_the_turns_that_the_runtime_counts() {
    within(WATCH, || {
        let (recording, runtime) = record(2, |runtime| {
            let spawns = async {
                for index in 0..10 {
                    let name = format!("yields {index}");
                    actor(|cx| yields(cx, 100)).name(name).spawn().detach();
                }
            };
            runtime.spawn(spawns).detach();
        });
        let runs = runtime.stats().total().runs;
        assert_eq!(
            recording.actors.iter().map(|actor| actor.runs).sum::<u64>(),
            runs
        );
        assert_eq!(recording.lanes.len(), 2);
        let turns = || recording.lanes.iter().flat_map(|lane| &lane.turns);
        assert_eq!(turns().count() as u64, runs);
        for (index, actor) in recording.actors.iter().enumerate() {
            let is_task = actor.name == "plain tasks";
            assert_eq!(actor.runs, if is_task { 1 } else { 101 }, "{actor:?}");
            let own = turns().filter(|turn| turn.actor == index);
            assert_eq!(own.map(|turn| turn.took).sum::<Duration>(), actor.busy);
        }
        assert!(turns().all(|turn| turn.end() <= recording.took));
        assert_eq!(
            recording.samples.last().unwrap().workers[0].runs,
            recording.lanes[0].turns.len() as u64
        );
        Document::parse(&render(&recording, "two workers")).unwrap();
    });
}

#[test]
fn full_log_counts_further_turns_and_keeps_the_sums() {
    const MORE: usize = 1000;
    within(WATCH, || {
        let (recording, _runtime) = record(1, |runtime| {
            let actor = runtime.block_on(async {
                actor(|cx| yields(cx, TURNS_MAX + MORE))
                    .name("busy")
                    .spawn()
            });
            actor.detach();
        });
        let lane = &recording.lanes[0];
        assert_eq!(lane.turns.len(), TURNS_MAX);
        assert_eq!(lane.left_out, MORE as u64 + 1);
        assert_eq!(recording.actors[0].runs, (TURNS_MAX + MORE + 1) as u64);
        assert_eq!(recording.actors[0].busy, lane.busy);
    });
}
