//! Messages of every shape: zero-sized, many, large, aligned, and with a `Drop` that has effects.

use greenroom::{AskDetail, AskError, Context, Reply, WeakAddress, actor};

use crate::support::{Bomb, Drops, Gate, Home, WATCH, drive, in_every_home, poll_once, within};

/// Tells `count` messages of one shape, and checks that each arrives unchanged in both kinds of
/// mailbox.
fn comes_back<M>(home: &Home, count: usize, make: fn(usize) -> M, check: fn(usize, &M) -> bool)
where
    M: Send + 'static,
{
    let count = home.many(count);
    for capacity in [None, Some(count)] {
        let held = home.hold();
        let reader = actor(async move |mut cx: Context<M>| {
            let mut read = 0;
            while let Some(message) = cx.recv().await {
                let message = Box::new(message);
                assert!(check(read, &message), "message {read} arrived changed");
                assert!((&raw const *message).is_aligned());
                read += 1;
            }
            read
        });
        let handle = match capacity {
            None => home.spawn(reader),
            Some(capacity) => home.spawn(reader.capacity(capacity)),
        };
        for number in 0..count {
            handle.tell(make(number)).unwrap();
        }
        drop(held);
        assert_eq!(home.block_on(handle.join()).unwrap(), count);
    }
}

#[derive(Clone, Copy, PartialEq)]
#[repr(align(16))]
struct Aligned16(u8);

#[derive(Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Aligned64([u8; 100]);

#[derive(Clone, Copy, PartialEq)]
#[repr(align(4096))]
struct Page(u8);

in_every_home!(
    messages_of_every_size_arrive_unchanged,
    aligned_messages_are_aligned,
    a_message_may_own_anything,
    a_message_may_be_an_address_of_its_own_reader,
    every_message_is_dropped_once_whether_handled_queued_or_refused,
    a_message_that_panics_when_its_handler_drops_it_ends_only_its_actor,
    dropping_messages_may_tell_the_same_actor,
);

fn messages_of_every_size_arrive_unchanged(home: &Home) {
    comes_back::<()>(home, 3_000, |_| (), |_, ()| true);
    comes_back::<u8>(home, 3_000, |at| at as u8, |at, &byte| byte == at as u8);
    comes_back::<u64>(
        home,
        3_000,
        |at| at as u64,
        |at, &number| number == at as u64,
    );
    macro_rules! sizes {
        ($($size:literal)+) => {$(
            comes_back::<[u8; $size]>(
                home, 100, |at| [at as u8; $size], |at, all| all.iter().all(|&byte| byte == at as u8),
            );
        )+};
    }
    // Sizes around the sizes of blocks.
    sizes!(3 16 47 48 49 63 64 65 255 256 503 504 505 1007 1008 1009 1024 4096 16_384);
}

fn aligned_messages_are_aligned(home: &Home) {
    comes_back(
        home,
        200,
        |at| Aligned16(at as u8),
        |at, got| *got == Aligned16(at as u8),
    );
    comes_back(
        home,
        200,
        |at| Aligned64([at as u8; 100]),
        |at, got| *got == Aligned64([at as u8; 100]),
    );
    comes_back(
        home,
        20,
        |at| Page(at as u8),
        |at, got| *got == Page(at as u8),
    );
}

fn a_message_may_own_anything(home: &Home) {
    comes_back(home, 500, |at| vec![at; at], |at, got| *got == vec![at; at]);
    let handle = home.spawn(actor(
        async |mut cx: Context<Box<dyn FnOnce() -> u32 + Send>>| {
            let mut sum = 0;
            while let Some(job) = cx.recv().await {
                sum += job();
            }
            sum
        },
    ));
    for number in 0..10 {
        handle.tell(Box::new(move || number)).unwrap();
    }
    assert_eq!(home.block_on(handle.join()).unwrap(), 45);
}

fn a_message_may_be_an_address_of_its_own_reader(home: &Home) {
    struct Own(WeakAddress<Own>, greenroom::Address<Own>);
    let held = home.hold();
    let handle = home.spawn(actor(async |mut cx: Context<Own>| {
        let mut read = 0;
        while let Some(Own(weak, strong)) = cx.recv().await {
            assert_eq!(
                (weak.id(), strong.id()),
                (cx.address().id(), cx.address().id())
            );
            read += 1;
        }
        read
    }));
    for _ in 0..10 {
        handle
            .tell(Own(handle.downgrade(), handle.address()))
            .unwrap();
    }
    drop(held);
    // The addresses in the actor's own mailbox keep it open until they are read.
    assert_eq!(home.block_on(handle.join()).unwrap(), 10);
    // Killed with its own addresses in the mailbox, the actor ends nevertheless.
    let held = home.hold();
    let handle = home.spawn(actor(async |_cx: Context<Own>| ()));
    handle
        .tell(Own(handle.downgrade(), handle.address()))
        .unwrap();
    handle.kill();
    drop(held);
    assert!(home.block_on(handle.join()).is_err());
}

fn every_message_is_dropped_once_whether_handled_queued_or_refused(home: &Home) {
    let (drops, handling) = (Drops::default(), Gate::default());
    let handles = handling.clone();
    let handle = home.spawn(
        actor(async move |mut cx: Context<_>| {
            let _first = cx.recv().await;
            handles.open();
            std::future::pending::<()>().await;
        })
        .capacity(2),
    );
    handle.tell(drops.one()).unwrap();
    handling.pass();
    // The handler holds one message, two are in the mailbox, one send waits, and three are refused.
    handle.tell(drops.one()).unwrap();
    handle.tell(drops.one()).unwrap();
    let mut waits = handle.send(drops.one());
    assert!(poll_once(&mut waits).is_pending());
    let full = handle.tell(drops.one()).unwrap_err();
    assert_eq!(drops.count(), 0);
    handle.kill();
    home.block_on(handle.closed());
    assert_eq!(
        drops.count(),
        3,
        "the handled message and the two in the mailbox are dropped"
    );
    let closed = handle.tell(drops.one()).unwrap_err();
    let refused = drive(waits).unwrap_err();
    drop(handle.send(drops.one()));
    assert_eq!(drops.count(), 4);
    drop((full, closed, refused));
    assert_eq!(drops.count(), 7);
}

fn a_message_that_panics_when_its_handler_drops_it_ends_only_its_actor(home: &Home) {
    let drops = Drops::default();
    let spawn = || {
        home.spawn(actor(async |mut cx: Context<Bomb>| {
            let mut handled = 0;
            while let Some(message) = cx.recv().await {
                drop(message);
                handled += 1;
            }
            handled
        }))
    };
    let (one, other) = (spawn(), spawn());
    for number in 0..5 {
        one.tell(Bomb::new(number == 2, &drops)).unwrap();
        other.tell(Bomb::new(false, &drops)).unwrap();
    }
    assert!(home.block_on(one.join()).is_err());
    assert_eq!(home.block_on(other.join()).unwrap(), 5);
    assert_eq!(drops.count(), 10);
}

fn dropping_messages_may_tell_the_same_actor(home: &Home) {
    struct Tells {
        own: WeakAddress<Tells>,
        drops: Drops,
        tells: bool,
        _reply: Option<Reply<()>>,
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            drop(self.drops.one());
            if self.tells {
                // The actor's own mailbox is being emptied, so the message is refused and dropped
                // here.
                let (own, drops) = (self.own.clone(), self.drops.clone());
                let again = Tells {
                    own,
                    drops,
                    tells: false,
                    _reply: None,
                };
                assert!(self.own.tell(again).unwrap_err().is_closed());
            }
        }
    }
    for kill in [false, true] {
        let drops = Drops::default();
        let held = home.hold();
        let handle = home.spawn(actor(async |_cx: Context<Tells>| ()));
        let make = |reply| Tells {
            own: handle.downgrade(),
            drops: drops.clone(),
            tells: true,
            _reply: reply,
        };
        (0..100).for_each(|_| handle.tell(make(None)).unwrap());
        let mut asked = Box::pin(handle.ask(|reply| make(Some(reply))));
        assert!(poll_once(&mut asked).is_pending());
        if kill {
            handle.kill();
        }
        drop(held);
        assert_eq!(drive(asked), Err(AskError::NoReply(AskDetail::default())));
        home.block_on(handle.closed());
        assert_eq!(drops.count(), 202);
    }
}

#[test]
fn a_burst_of_a_million_messages_is_read_in_order() {
    within(WATCH, || {
        let home = Home::workers(2);
        let held = home.hold();
        let handle = home.spawn(actor(async |mut cx: Context<u32>| {
            let mut next = 0;
            while let Some(number) = cx.recv().await {
                assert_eq!(number, next);
                next += 1;
            }
            next
        }));
        (0..1_000_000).for_each(|number| handle.tell(number).unwrap());
        drop(held);
        assert_eq!(home.block_on(handle.join()).unwrap(), 1_000_000);
    });
}
