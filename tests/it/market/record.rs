//! The document's program, on a market: jobs that print a line, and others.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use super::*;

/// What a job of the document does.
#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    DoNothing,
    PrintJob,
    CreateAccount,
}

/// A job of the document, with its defaults.
#[derive(Clone, Copy, Default)]
struct Record {
    kind: Kind,
    player: u32,
    ip: u32,
    port: u16,
    counter: u32,
    priority: u32,
}

impl Record {
    fn complete(self, out: &Mutex<String>, accounts: &Mutex<Vec<u32>>) {
        match self.kind {
            Kind::DoNothing => {}
            Kind::CreateAccount => accounts.lock().unwrap().push(self.player),
            Kind::PrintJob => {
                let Record {
                    player,
                    ip,
                    port,
                    counter,
                    priority,
                    ..
                } = self;
                let mut out = out.lock().unwrap();
                writeln!(
                    out,
                    "Completing: job counter {counter} priority {priority} for player {player} \
                     from IP:P {ip}:{port}"
                )
                .unwrap();
            }
        }
    }
}

#[test]
fn the_jobs_of_the_document_say_what_they_do() {
    everywhere(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let (out, accounts) = <(Arc<Mutex<String>>, Arc<Mutex<Vec<u32>>>)>::default();
        let print = Record {
            kind: Kind::PrintJob,
            player: 3,
            ip: 2130,
            port: 8080,
            counter: 1,
            priority: 0,
        };
        let records = [
            print,
            Record::default(),
            Record {
                player: 4,
                counter: 2,
                priority: 2,
                ..print
            },
            Record {
                kind: Kind::CreateAccount,
                player: 5,
                ..print
            },
        ];
        let mut jobs = Vec::new();
        for record in records {
            let (out, accounts) = (out.clone(), accounts.clone());
            let job = Job::new(move || record.complete(&out, &accounts));
            let job = job.key(record.player).priority(record.priority);
            jobs.push(market.offer(job).await.unwrap());
        }
        gate.open();
        runs.await.unwrap();
        for job in jobs {
            job.await.unwrap();
        }
        assert_eq!(
            *out.lock().unwrap(),
            "Completing: job counter 2 priority 2 for player 4 from IP:P 2130:8080\n\
             Completing: job counter 1 priority 0 for player 3 from IP:P 2130:8080\n"
        );
        assert_eq!(*accounts.lock().unwrap(), [5]);
    });
}
