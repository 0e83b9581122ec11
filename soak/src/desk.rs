//! The process `desk`: a node that sends notes to the shop, and is stopped now and then.
//!
//! A session ends when the address of the shop's actor is lost. Then the notes behind the last answer
//! are lost with an error. All others were handled, which the answers say.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_cluster::{Distance, RemoteAddress};

use crate::life;
use crate::pace::{NOTES, Pace};
use crate::report::Tallies;
use crate::shop::{NAME, NODES, SessionNote, builder, open};

static SENT: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Answers that are not the number of notes of the session.
static MISTAKEN: AtomicU64 = AtomicU64::new(0);

/// One note of so many is a question.
const ASK: u64 = 64;

/// The notes of a session at most.
const MOST: u64 = 5_000;

/// The shop may be away.
const LOOK: Duration = Duration::from_secs(2);

/// A pause while as much is under way as may be.
const PAUSE: Duration = Duration::from_millis(1);

/// Sends to the order to end.
pub fn live(engine: &str, at: &str, folder: &str) {
    let mut builder = builder(NODES[1], engine, at, folder);
    if engine != "nats" {
        builder = builder.seeds([at]);
    }
    greenroom::run(async {
        let node = open(builder).await;
        life::begin(tallies);
        let mut pace = Pace::new(NOTES);
        while !life::ends() {
            if let Ok(far) = node.lookup(NAME).timeout(LOOK).await {
                session(&far, &mut pace).await;
            }
        }
        node.close().await;
    });
    life::end(uneven());
}

/// Sends the notes of a session.
async fn session(far: &RemoteAddress<SessionNote>, pace: &mut Pace) {
    // Sessions are numbered in order. No other process sends to this shop.
    let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let (mut accepted, mut answered) = (0, 0);
    while answered < MOST && !(life::ends() && answered == accepted) {
        let is_question = accepted % ASK == ASK - 1 || life::ends();
        if is_question {
            add(&SENT, 1);
            accepted += 1;
            let number = accepted - 1;
            let asked = far.ask(|reply| SessionNote::Asked(session, number, reply));
            match asked.await {
                Ok(handled) => {
                    add(&MISTAKEN, u64::from(handled != accepted));
                    add(&HANDLED, accepted - answered);
                    answered = accepted;
                }
                Err(_) => break,
            }
            pace.done(ASK).await;
            continue;
        }
        let told = SessionNote::Told(session, accepted);
        let sent = match accepted % 2 {
            0 => far.tell(told),
            _ => far.send(told).await,
        };
        add(&SENT, 1);
        match sent.map_err(|error| error.why) {
            Ok(()) => accepted += 1,
            Err(why) => {
                add(&REFUSED, 1);
                match why {
                    Distance::Full => greenroom::time::sleep(PAUSE).await,
                    Distance::Lost | Distance::Closed | Distance::Unknown => break,
                    why => return life::wrong(format!("desk: a note was not sent: {why}")),
                }
            }
        }
    }
    add(&LOST, accepted - answered);
}

fn add(count: &AtomicU64, more: u64) {
    // Relaxed: counts are compared after the end of all that counts.
    count.fetch_add(more, Ordering::Relaxed);
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn uneven() -> Vec<String> {
    let [sent, handled, refused, lost] = [&SENT, &HANDLED, &REFUSED, &LOST].map(get);
    let mut sentences = Vec::new();
    if sent != handled + refused + lost {
        sentences.push(format!(
            "desk: {sent} notes, and {handled} handled, {refused} refused, {lost} lost"
        ));
    }
    match get(&MISTAKEN) {
        0 => {}
        mistaken => sentences.push(format!(
            "desk: {mistaken} answers are not the number of notes"
        )),
    }
    sentences
}

fn tallies() -> Tallies {
    let counts = [
        ("sent", &SENT),
        ("handled", &HANDLED),
        ("refused", &REFUSED),
        ("lost", &LOST),
        ("sessions", &SESSIONS),
    ];
    counts
        .map(|(name, count)| (name.to_owned(), get(count)))
        .into()
}
