//! Who has a name, and until when.

use greenroom::actor;
use greenroom::registry::{LookupError, Name, RegisterError};
use greenroom::supervise::Restarts;

use super::{Job, STORE, idle, work, worker};
use crate::support::{Gate, Home, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_registered_actor_is_found_by_its_name,
    a_taken_name_tells_who_has_it,
    a_name_is_free_when_closed_returns,
    a_stopped_actor_has_its_name_until_it_has_ended,
    an_actor_may_register_again,
    an_actor_may_have_several_names,
    a_restarted_actor_keeps_its_name,
    a_name_may_lead_through_a_map,
    a_name_keeps_no_actor_open,
    a_name_can_be_unregistered,
    an_error_about_types_says_both,
    a_closed_actor_gets_no_name,
    any_text_is_a_name,
);

fn a_registered_actor_is_found_by_its_name(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        let unknown = STORE.get().unwrap_err();
        assert!(matches!(unknown, LookupError::Unknown { .. }));
        assert_eq!(unknown.to_string(), r#"no open actor has the name "store""#);
        STORE.register(&store).unwrap();
        assert_eq!(STORE.get().unwrap(), *store);
        // The text is the name, however it was made.
        let found = Name::owned(String::from("store")).get().unwrap();
        assert_eq!(found.ask(Job::Number).await, Ok(0));
    });
}

fn a_taken_name_tells_who_has_it(home: &Home) {
    let (named, nameless) = (home.spawn(actor(work).name("Ada")), worker(home));
    home.block_on(async {
        STORE.register(&named).unwrap();
        let taken = STORE.register(&nameless).unwrap_err();
        let text = format!(r#"the name "store" is taken by "Ada" #{}"#, named.id());
        assert_eq!(taken.to_string(), text);
        match taken {
            RegisterError::Taken { by, .. } => assert_eq!(by.id(), named.id()),
            other => panic!("{other}"),
        }
        assert_eq!(STORE.get().unwrap(), *named);
    });
}

fn a_name_is_free_when_closed_returns(home: &Home) {
    keep_bombs_quiet();
    let rounds = home.many(200);
    home.block_on(async {
        for round in 0..rounds {
            // The handle holds the result until the end of the round.
            let store = worker(home);
            STORE.register(&store).unwrap();
            match round % 4 {
                0 => store.stop(),
                1 => store.kill(),
                2 => store.tell(Job::Return).unwrap(),
                _ => store.tell(Job::Panic).unwrap(),
            }
            store.closed().await;
            let next = worker(home);
            STORE.register(&next).unwrap();
            assert_eq!(STORE.get().unwrap(), *next);
            next.kill();
            // Joining tells of the end, too.
            let _killed = next.join().await;
            assert!(STORE.get().is_err());
        }
    });
}

fn a_stopped_actor_has_its_name_until_it_has_ended(home: &Home) {
    let (store, other) = (worker(home), worker(home));
    home.block_on(async {
        STORE.register(&store).unwrap();
        let (begun, end) = (Gate::default(), Gate::default());
        store.tell(Job::Hold(begun.clone(), end.clone())).unwrap();
        store.stop();
        begun.wait().await;
        // It accepts no message, so it is not found.
        assert!(matches!(STORE.get(), Err(LookupError::Unknown { .. })));
        let taken = STORE.register(&other);
        assert!(matches!(taken, Err(RegisterError::Taken { .. })));
        end.open();
        store.closed().await;
        STORE.register(&other).unwrap();
    });
}

fn an_actor_may_register_again(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        STORE.register(&store).unwrap();
        assert_eq!(STORE.get().unwrap(), *store);
        assert!(STORE.unregister());
        assert!(STORE.get().is_err());
        STORE.register(&store).unwrap();
        store.kill();
        store.closed().await;
        assert!(STORE.get().is_err());
    });
}

fn an_actor_may_have_several_names(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        let names = ["a", "b", "c"].map(Name::new);
        for name in &names {
            name.register(&store).unwrap();
        }
        assert!(names[1].unregister());
        assert_eq!(
            names.each_ref().map(|name| name.get().is_ok()),
            [true, false, true]
        );
        store.kill();
        store.closed().await;
        assert!(names.iter().all(|name| name.get().is_err()));
    });
}

fn a_restarted_actor_keeps_its_name(home: &Home) {
    keep_bombs_quiet();
    let store = home.spawn(actor(work).restart(Restarts::on_fault()));
    home.block_on(async {
        STORE.register(&store).unwrap();
        STORE.get().unwrap().tell(Job::Panic).unwrap();
        let number = STORE.get().unwrap().ask(Job::Number).await;
        assert_eq!(number, Ok(1));
    });
}

fn a_name_may_lead_through_a_map(home: &Home) {
    const HOLDS: Name<(Gate, Gate)> = Name::new("holds");
    let store = worker(home);
    home.block_on(async {
        HOLDS
            .register(&store.map(|(begun, end)| Job::Hold(begun, end)))
            .unwrap();
        let gates = (Gate::default(), Gate::default());
        gates.1.open();
        HOLDS.get().unwrap().tell(gates.clone()).unwrap();
        gates.0.wait().await;
        store.kill();
        store.closed().await;
        assert!(HOLDS.get().is_err());
    });
}

fn a_name_keeps_no_actor_open(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        // Its only address is dropped by the call.
        store.join().await.unwrap();
        assert!(STORE.get().is_err());
    });
}

fn a_name_can_be_unregistered(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        assert!(!STORE.unregister());
        STORE.register(&store).unwrap();
        assert!(
            !Name::<u32>::new("store").unregister(),
            "it has another type"
        );
        assert!(STORE.unregister());
        assert!(!STORE.unregister());
        assert!(!store.is_closed());
        STORE.register(&store).unwrap();
    });
}

fn an_error_about_types_says_both(home: &Home) {
    let (numbers, texts) = (
        home.spawn(actor(idle::<u32>)),
        home.spawn(actor(idle::<String>)),
    );
    let (by_number, by_text) = (Name::<u32>::new("it"), Name::<String>::new("it"));
    home.block_on(async {
        by_number.register(&numbers).unwrap();
        let says = r#""it" is registered for messages of type `u32`, not `alloc::string::String`"#;
        assert_eq!(by_text.get().unwrap_err().to_string(), says);
        assert_eq!(by_text.wait().await.unwrap_err().to_string(), says);
        let refused = by_text.register(&texts).unwrap_err();
        assert_eq!(refused.to_string(), says);
        // The actor that ends takes its type along.
        numbers.kill();
        numbers.closed().await;
        assert!(matches!(by_text.get(), Err(LookupError::Unknown { .. })));
        by_text.register(&texts).unwrap();
        assert!(matches!(
            by_number.get(),
            Err(LookupError::WrongType {
                registered: "alloc::string::String",
                asked: "u32",
                ..
            })
        ));
    });
}

fn a_closed_actor_gets_no_name(home: &Home) {
    let (stopped, killed) = (worker(home), worker(home));
    home.block_on(async {
        stopped.stop();
        killed.kill();
        killed.closed().await;
        for closed in [&stopped, &killed] {
            let refused = STORE.register(closed);
            assert!(matches!(refused, Err(RegisterError::Closed)), "{refused:?}");
        }
        assert!(STORE.get().is_err());
    });
}

fn any_text_is_a_name(home: &Home) {
    let long = "x".repeat(1 << 20);
    let texts = [
        "",
        " ",
        "\0",
        "\0\0",
        "x",
        "\u{1f3ad}",
        "12345678",
        "12345678\0",
        "\r\n\t",
        "123456789",
        &long,
        &long[1..],
    ];
    let actors = texts.map(|_| worker(home));
    home.block_on(async {
        for (text, actor) in texts.iter().zip(&actors) {
            Name::owned(*text).register(actor).unwrap();
        }
        for (text, actor) in texts.iter().zip(&actors) {
            let name = Name::<Job>::owned(*text);
            assert_eq!(name.as_str(), *text);
            assert_eq!(name.get().unwrap(), **actor, "{:.20}", text);
        }
    });
}
