//! `spawn!` in all its forms.

use std::sync::Arc;

use greenroom::{Context, Handle, Runtime, actor, spawn};

use crate::support::{Log, WATCH, on_workers, panic_of, within};

async fn first(mut cx: Context<u32>, start: u32) -> u32 {
    let mut total = start;
    while let Some(number) = cx.recv().await {
        total += number;
    }
    total
}

async fn middle(a: u32, mut cx: Context<u32>, b: u32) -> (u32, Option<u32>, u32) {
    (a, cx.recv().await, b)
}

async fn last(a: &'static str, b: String, mut cx: Context<u32>) -> (String, Option<u32>) {
    (format!("{a}{b}"), cx.recv().await)
}

async fn alone(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

async fn generic<M: Send + 'static, const N: usize>(mut cx: Context<M>) -> (Option<M>, usize) {
    (cx.recv().await, N)
}

mod deep {
    pub mod er {
        pub async fn inside(mut cx: greenroom::Context<u32>) -> Option<u32> {
            cx.recv().await
        }
    }
}

#[derive(Clone)]
struct Service {
    name: &'static str,
    nested: Nested,
}

#[derive(Clone)]
struct Nested;

impl Service {
    async fn run(self, mut cx: Context<u32>, more: u32) -> (&'static str, u32) {
        (self.name, cx.recv().await.unwrap_or(0) + more)
    }

    async fn associated<T: Send>(mut cx: Context<u32>, value: T) -> (Option<u32>, T) {
        (cx.recv().await, value)
    }

    async fn shared(self: Arc<Self>, mut cx: Context<u32>) -> (&'static str, Option<u32>) {
        (self.name, cx.recv().await)
    }
}

impl Nested {
    async fn run(self, mut cx: Context<u32>) -> Option<u32> {
        cx.recv().await
    }
}

#[test]
fn the_context_may_stand_at_any_position() {
    on_workers(1, async {
        let handle = spawn!(first(_, 40));
        handle.tell(2).unwrap();
        assert_eq!(handle.join().await.unwrap(), 42);
        let handle = spawn!(middle(1, _, 3));
        handle.tell(2).unwrap();
        assert_eq!(handle.join().await.unwrap(), (1, Some(2), 3));
        let handle = spawn!(last("a", String::from("b"), _));
        handle.tell(1).unwrap();
        assert_eq!(handle.join().await.unwrap(), ("ab".into(), Some(1)));
        let handle = spawn!(alone(_));
        handle.tell(1).unwrap();
        assert_eq!(handle.join().await.unwrap(), Some(1));
    });
}

#[test]
fn commas_may_trail() {
    on_workers(1, async {
        assert_eq!(spawn!(first(_, 1,)).join().await.unwrap(), 1);
        assert_eq!(spawn!(first(_, 1),).join().await.unwrap(), 1);
        assert_eq!(spawn!(alone(_,)).join().await.unwrap(), None);
        assert_eq!(
            spawn!(middle(1, _, 2,), capacity = 1,)
                .join()
                .await
                .unwrap(),
            (1, None, 2)
        );
        let handle = spawn!(last("a", "b".to_owned(), _,), name = "n",);
        assert_eq!(handle.name(), Some("n"));
        let handle = spawn!(|mut cx: Context<u32>| async move { cx.recv().await },);
        assert_eq!(handle.join().await.unwrap(), None);
    });
}

#[test]
fn options_may_come_in_any_order() {
    on_workers(1, async {
        let runtime = Runtime::current();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let capacity = 2;
        let all = [
            spawn!(first(_, 1), name = "n", capacity = 2, on = &runtime),
            spawn!(first(_, 1), name = "n", on = &pinned, capacity = capacity),
            spawn!(
                first(_, 1),
                capacity = 1 + 1,
                name = String::from("n"),
                on = &pinned
            ),
            spawn!(
                first(_, 1),
                capacity = 2,
                on = &Runtime::current(),
                name = "n"
            ),
            spawn!(
                first(_, 1),
                on = &runtime,
                name = ["m", "n"][1],
                capacity = 2
            ),
            spawn!(
                first(_, 1),
                on = &pinned,
                capacity = 2,
                name = format!("{}", 'n')
            ),
        ];
        for handle in all {
            assert_eq!(handle.name(), Some("n"));
            handle.send(1).await.unwrap();
            assert_eq!(handle.join().await.unwrap(), 2);
        }
        let never = async |_cx: Context<u32>| std::future::pending::<()>().await;
        let one = spawn!(never(_), capacity = 1);
        one.tell(1).unwrap();
        assert!(one.tell(2).unwrap_err().is_full());
        one.kill();
    });
}

#[test]
fn closures_of_every_kind() {
    on_workers(2, async {
        let add = 40;
        let a = spawn!(move |mut cx: Context<u32>| async move { cx.recv().await.map(|n| n + add) });
        let text = String::from("moved");
        let b = spawn!(move |mut cx: Context<u32>| async move { (cx.recv().await, text) });
        let c = spawn!(async |mut cx: Context<u32>| cx.recv().await);
        let text = String::from("moved");
        let d = spawn!(
            async move |mut cx: Context<u32>| { (text, cx.recv().await) },
            name = "d"
        );
        let e = spawn!(|cx: Context<u32>| first(cx, 1), capacity = 3, name = "e");
        let f = spawn!(|mut cx| async move {
            let message: Option<u32> = cx.recv().await;
            message
        });
        for address in [
            a.address(),
            b.address(),
            c.address(),
            d.address(),
            e.address(),
        ] {
            address.tell(2).unwrap();
        }
        assert_eq!(a.join().await.unwrap(), Some(42));
        assert_eq!(b.join().await.unwrap(), (Some(2), "moved".into()));
        assert_eq!(c.join().await.unwrap(), Some(2));
        assert_eq!((d.name(), e.name()), (Some("d"), Some("e")));
        assert_eq!(d.join().await.unwrap(), ("moved".into(), Some(2)));
        assert_eq!(e.join().await.unwrap(), 3);
        assert_eq!(f.join().await.unwrap(), None);
    });
}

#[test]
fn a_closure_may_be_the_value_of_any_expression() {
    on_workers(1, async {
        let text = Arc::new(String::from("text"));
        let a = spawn!({
            let text = text.clone();
            move |mut cx: Context<u32>| async move { (cx.recv().await, text) }
        });
        let b = spawn!(
            {
                let text = text.clone();
                async move |mut cx: Context<u32>| (cx.recv().await, text)
            },
            name = "b",
            capacity = 1,
        );
        let variable = |mut cx: Context<u32>| async move { (cx.recv().await, text) };
        let c = spawn!(variable, name = "c");
        assert_eq!((b.name(), c.name()), (Some("b"), Some("c")));
        for handle in [&*a, &*b, &*c] {
            handle.tell(1).unwrap();
        }
        for (number, text) in [a.await.unwrap(), b.await.unwrap(), c.await.unwrap()] {
            assert_eq!((number, &**text), (Some(1), "text"));
        }
        // A call that returns a closure, and closures that are called.
        let adds = |more: u32| move |cx: Context<u32>| first(cx, more);
        assert_eq!(spawn!(adds(40)).join().await.unwrap(), 40);
        assert_eq!(spawn!(alone).join().await.unwrap(), None);
        type Boxed = Box<dyn FnOnce(Context<u32>) -> std::future::Ready<u32> + Send>;
        let boxed: Boxed = Box::new(|_cx| std::future::ready(7));
        assert_eq!(spawn!(boxed).join().await.unwrap(), 7);
        // The future need not be `Send` for an actor with its own thread.
        let local = spawn!(
            {
                let number = 7;
                async move |_cx: Context<u32>| {
                    let number = std::rc::Rc::new(number);
                    greenroom::yield_now().await;
                    *number
                }
            },
            on = greenroom::Detached
        );
        assert_eq!(local.join().await.unwrap(), 7);
    });
}

#[test]
fn the_function_may_be_a_path_a_method_a_field_or_a_variable() {
    on_workers(1, async {
        assert_eq!(spawn!(deep::er::inside(_)).join().await.unwrap(), None);
        assert_eq!(
            spawn!(self::deep::er::inside(_)).join().await.unwrap(),
            None
        );
        assert_eq!(
            spawn!(generic::<String, 7>(_)).join().await.unwrap(),
            (None, 7)
        );
        let service = Service {
            name: "s",
            nested: Nested,
        };
        let shared = Arc::new(service.clone());
        assert_eq!(spawn!(service.nested.run(_)).join().await.unwrap(), None);
        let service = Service {
            name: "s",
            nested: Nested,
        };
        assert_eq!(spawn!(service.run(_, 1)).join().await.unwrap(), ("s", 1));
        assert_eq!(spawn!(shared.shared(_)).join().await.unwrap(), ("s", None));
        let handle = spawn!(Service::associated::<Vec<u8>>(_, vec![1]), name = "n");
        assert_eq!(handle.join().await.unwrap(), (None, vec![1]));
        let variable =
            |mut cx: Context<u32>, more: u32| async move { cx.recv().await.unwrap_or(0) + more };
        assert_eq!(spawn!(variable(_, 5)).join().await.unwrap(), 5);
        struct Holds<F>(F);
        let holds = Holds(alone);
        assert_eq!(spawn!((holds.0)(_)).join().await.unwrap(), None);
    });
}

#[test]
fn arguments_are_evaluated_at_the_call_in_order_and_once() {
    on_workers(1, async {
        let log = Log::default();
        let note = |entry: u32| {
            log.add(entry);
            entry
        };
        let option = |entry: u32| {
            log.add(entry);
            entry as usize
        };
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        async fn takes<T>(a: u32, _cx: Context<u32>, b: u32, thread: T) -> (u32, u32, T) {
            (a, b, thread)
        }
        let handle = spawn!(takes(note(1), _, note(2), thread()), capacity = option(3));
        assert_eq!(
            log.take(),
            [1, 2, 3],
            "evaluated before anything is awaited"
        );
        assert_eq!(handle.join().await.unwrap(), (1, 2, here));
        assert_eq!(log.take(), []);
    });
}

#[test]
fn arguments_may_be_any_expression() {
    on_workers(1, async {
        async fn takes<F: Fn(u32) -> u32>(
            mut cx: Context<u32>,
            f: F,
            (a, b): (u32, u32),
            list: [u32; 2],
            text: String,
        ) -> (u32, u32, String) {
            (
                cx.recv().await.map_or(0, f),
                a + b + list[0] + list[1],
                text,
            )
        }
        // The macro uses the same names internally.
        let (argument, context) = (1, 2);
        let handle = spawn!(
            takes(
                _,
                move |n: u32| n + argument + context,
                (argument, if context == 2 { 10 } else { 0 }),
                [100, 1_000],
                {
                    let _: u32 = 5;
                    format!("{argument}-{context}")
                },
            ),
            name = "any",
        );
        handle.tell(10).unwrap();
        assert_eq!(handle.join().await.unwrap(), (13, 1_111, "1-2".into()));
    });
}

#[test]
fn arguments_are_moved_or_copied_as_in_any_call() {
    on_workers(1, async {
        let (text, number) = (String::from("x"), 7);
        let handle = spawn!(last("", text, _));
        let again = spawn!(first(_, number));
        assert_eq!(handle.join().await.unwrap().0, "x");
        assert_eq!(again.join().await.unwrap() + number, 14);
    });
}

#[test]
fn spawn_works_inside_an_actor_as_outside() {
    on_workers(2, async {
        let outer = spawn!(|mut cx: Context<u32>| async move {
            let inner: Handle<u32, u32> = spawn!(first(_, 1));
            while let Some(number) = cx.recv().await {
                inner.tell(number).unwrap();
            }
            inner.join().await.unwrap()
        });
        (0..10).for_each(|number| outer.tell(number).unwrap());
        assert_eq!(outer.join().await.unwrap(), 46);
    });
}

#[test]
fn the_macro_works_like_the_builder() {
    on_workers(1, async {
        let built = actor(|cx| first(cx, 40)).name("n").capacity(1).spawn();
        let spawned = spawn!(first(_, 40), name = "n", capacity = 1);
        for handle in [&built, &spawned] {
            assert_eq!(handle.name(), Some("n"));
            handle.send(2).await.unwrap();
        }
        assert_eq!(built.join().await.unwrap(), spawned.join().await.unwrap());
    });
}

#[test]
fn spawn_panics_at_the_call_without_a_runtime_or_with_bad_options() {
    within(WATCH, || {
        macro_rules! panics_here {
            ($part:literal, $call:expr) => {
                let (text, file, line) = panic_of(|| $call);
                assert!(file.ends_with("spawn_macro.rs"), "{file}");
                assert_eq!(line, line!());
                assert!(text.contains($part), "{text}");
            };
        }
        panics_here!("no greenroom runtime is current", spawn!(alone(_)));
        panics_here!("\"tally\"", spawn!(first(_, 1), name = "tally"));
        panics_here!("no greenroom runtime", spawn!(async |_: Context<u32>| ()));
        panics_here!("no greenroom runtime", drop(greenroom::spawn(async {})));
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let on = &runtime;
        panics_here!("capacity is 0", spawn!(alone(_), on = on, capacity = 0));
    });
}
