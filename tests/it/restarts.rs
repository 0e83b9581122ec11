//! Actors that begin anew in place: what stays, what goes, and when it is over.

use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::{AskCause, AskError, Context, Fault, Reply, actor, spawn};

enum Job {
    Divide(u32, u32, Reply<u32>),
    Number(Reply<u64>),
}

async fn divider(mut cx: Context<Job>) {
    while let Some(job) = cx.recv().await {
        match job {
            Job::Divide(a, b, reply) => reply.send(a / b),
            Job::Number(reply) => reply.send(cx.incarnation_number()),
        }
    }
}

#[test]
fn a_restarted_actor_has_the_same_address_and_messages() {
    greenroom::run(async {
        let divider = spawn!(divider(_), name = "divider", restart = Restarts::on_fault());
        let id = divider.id();
        let bad = divider.request(|reply| Job::Divide(1, 0, reply));
        let good = divider.request(|reply| Job::Divide(42, 2, reply));
        let number = divider.request(Job::Number);
        let (bad, good, number) = greenroom::concurrently((bad, good, number)).await;
        let Err(AskError::NoReply(detail)) = bad else {
            panic!("{bad:?}")
        };
        assert_eq!(
            detail.why(),
            &AskCause::Panicked("attempt to divide by zero".into())
        );
        assert_eq!((good, number), (Ok(21), Ok(1)));
        assert_eq!((divider.id(), divider.name()), (id, Some("divider")));
        divider.join().await.unwrap();
    });
}

#[test]
fn an_actor_whose_intensity_is_used_up_ends_with_its_last_fault() {
    greenroom::run(async {
        let restarts = Restarts::on_fault().intensity(2, Duration::from_secs(3600));
        let lost = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = lost.clone();
        let bomb = actor(|mut cx: Context<u32>| async move {
            let number = cx.recv().await;
            panic!("{number:?}");
        })
        .restart(restarts)
        .on_undelivered(move |number| seen.lock().unwrap().push(number))
        .spawn();
        for number in 1..=5 {
            bomb.tell(number).unwrap();
        }
        let Err(Fault::Panicked(panic)) = bomb.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("Some(3)"));
        assert_eq!(*lost.lock().unwrap(), [4, 5]);
    });
}
