//! Actors that own others by `adopt`, or learn of their ends by `watch`.

use std::future::pending;

use greenroom::{Address, Context, End, Fault, Handle, Reply, actor};

use crate::support::{Bomb, Drops, Home, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_stopped_parent_receives_its_messages_then_its_children_then_none,
    a_parent_without_senders_stops_its_children,
    the_children_of_a_parent_that_ends_are_stopped,
    no_actor_adopts_itself_or_an_ancestor,
    a_watch_tells_each_end,
    a_watch_keeps_neither_actor_open,
);

enum Event {
    Number(u32),
    Child(Result<u32, Fault>),
    /// Asks for the addresses of the children.
    Children(Reply<Vec<Address<u32>>>),
}

/// Adds up what it receives.
async fn sum(mut cx: Context<u32>) -> u32 {
    let mut sum = 0;
    while let Some(number) = cx.recv().await {
        sum += number;
    }
    sum
}

/// Adopts the children, and collects all numbers that it receives.
async fn parent(mut cx: Context<Event>, children: Vec<Handle<u32, u32>>) -> Vec<u32> {
    let addresses: Vec<_> = children.iter().map(|child| child.address()).collect();
    for child in children {
        cx.adopt(child, Event::Child);
    }
    let mut numbers = Vec::new();
    while let Some(event) = cx.recv().await {
        match event {
            Event::Number(number) | Event::Child(Ok(number)) => numbers.push(number),
            Event::Children(reply) => reply.send(addresses.clone()),
            Event::Child(Err(_)) => unreachable!("each child returns"),
        }
    }
    numbers
}

fn a_stopped_parent_receives_its_messages_then_its_children_then_none(home: &Home) {
    let children = (0..2).map(|_| home.spawn(actor(sum))).collect::<Vec<_>>();
    for child in &children {
        child.tell(20).unwrap();
    }
    let parent = home.spawn(actor(|cx| parent(cx, children)));
    parent.tell(Event::Number(1)).unwrap();
    parent.tell(Event::Number(2)).unwrap();
    parent.stop();
    assert_eq!(home.block_on(parent.join()).unwrap(), [1, 2, 20, 20]);
}

fn a_parent_without_senders_stops_its_children(home: &Home) {
    let child = home.spawn(actor(sum));
    child.tell(20).unwrap();
    let parent = home.spawn(actor(|cx| parent(cx, vec![child])));
    assert_eq!(home.block_on(parent.join()).unwrap(), [20]);
}

fn the_children_of_a_parent_that_ends_are_stopped(home: &Home) {
    let children = (0..2).map(|_| home.spawn(actor(sum))).collect();
    let parent = home.spawn(actor(|cx| parent(cx, children)));
    home.block_on(async {
        let children = parent.ask(Event::Children).await.unwrap();
        parent.kill();
        assert!(matches!(parent.join().await, Err(Fault::Killed)));
        for child in children {
            assert_eq!(child.ended().await, End::Returned);
        }
    });
}

fn no_actor_adopts_itself_or_an_ancestor(home: &Home) {
    enum Owner {
        Adopt(Handle<Owner, ()>, Reply<Option<String>>),
        ChildEnded,
    }

    /// Adopts each actor that it receives. The answer is the error, if there is one.
    async fn owner(mut cx: Context<Owner>) {
        while let Some(message) = cx.recv().await {
            let Owner::Adopt(child, reply) = message else {
                continue;
            };
            let adopted = cx.try_adopt(child, |_| Owner::ChildEnded);
            reply.send(adopted.as_ref().err().map(ToString::to_string));
            if let Err(error) = adopted {
                error.into_inner().detach();
            }
        }
    }

    let [top, middle, bottom, alone] = [(); 4].map(|()| home.spawn(actor(owner)));
    let addresses = [&top, &middle, &bottom, &alone].map(|owner| owner.address());
    home.block_on(async {
        let [to_top, to_middle, to_bottom, to_alone] = &addresses;
        let adopted = to_top.ask(|reply| Owner::Adopt(middle, reply)).await;
        assert_eq!(adopted, Ok(None));
        let adopted = to_middle.ask(|reply| Owner::Adopt(bottom, reply)).await;
        assert_eq!(adopted, Ok(None));
        let refused = to_bottom.ask(|reply| Owner::Adopt(top, reply)).await;
        assert!(refused.unwrap().unwrap().ends_with("one of its ancestors"));
        let refused = to_alone.ask(|reply| Owner::Adopt(alone, reply)).await;
        assert!(refused.unwrap().unwrap().ends_with("cannot adopt itself"));
        to_alone.stop();
        to_top.stop();
        for address in &addresses {
            assert_eq!(address.ended().await, End::Returned);
        }
    });
}

/// Watches the actors, and returns their ends.
async fn ends(mut cx: Context<End>, watched: Vec<Address<()>>) -> Vec<End> {
    let _open = cx.address();
    let mut ends = Vec::new();
    for address in watched {
        cx.watch(&address, |end| end).detach();
        ends.extend(cx.recv().await);
    }
    ends
}

fn a_watch_tells_each_end(home: &Home) {
    keep_bombs_quiet();
    let returns = home.spawn(actor(async |_: Context<()>| {}));
    let panics = home.spawn(actor(async |_: Context<()>| {
        drop(Bomb::new(true, &Drops::default()))
    }));
    let is_killed = home.spawn(actor(async |_: Context<()>| pending::<()>().await));
    is_killed.kill();
    let watched = vec![returns.address(), panics.address(), is_killed.address()];
    let watcher = home.spawn(actor(|cx| ends(cx, watched)));
    let ends = home.block_on(watcher.join()).unwrap();
    assert_eq!(ends, [End::Returned, End::Panicked, End::Killed]);
    assert!(home.block_on(panics.join()).is_err());
}

fn a_watch_keeps_neither_actor_open(home: &Home) {
    let watched = home.spawn(actor(sum));
    let address = watched.address();
    let watcher = home.spawn(actor(async move |mut cx: Context<End>| {
        cx.watch(&address, |end| end).detach();
        drop(address);
        cx.recv().await
    }));
    assert_eq!(home.block_on(watcher.join()).unwrap(), None);

    let address = watched.address();
    let watcher = home.spawn(actor(async move |mut cx: Context<End>| {
        cx.watch(&address, |end| end).detach();
        drop(address);
        let _open = cx.address();
        cx.recv().await
    }));
    assert_eq!(home.block_on(watched.join()).unwrap(), 0);
    assert_eq!(home.block_on(watcher.join()).unwrap(), Some(End::Returned));
}
