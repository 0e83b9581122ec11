//! `model_72`: turns that hold all workers, and a look at them.

use std::sync::Arc;

use ::loom::thread::spawn;

use super::super::long_turns::WorkerPosts;

/// Checks that no order of two turns and a look leaves both workers held without another look.
#[test]
fn model_72_turns_that_hold_all_workers_are_seen_or_looked_at_again() {
    ::loom::model(|| {
        let posts = Arc::new(WorkerPosts::new(2));
        assert!(posts.occupy(0, ()), "the first turn arms the look");
        posts.vacate(0);
        let turns = [0, 1].map(|worker| {
            let posts = posts.clone();
            spawn(move || posts.occupy(worker, ()))
        });
        let are_seen = posts.look().is_some();
        let arm = turns.map(|turn| turn.join().unwrap());
        assert!(are_seen || arm != [false; 2], "nothing looks at the turns");
        assert_ne!(arm, [true; 2], "one look is armed");
    });
}
