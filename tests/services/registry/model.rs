//! Names and tags beside naive models: maps from texts to actors, and from actors to tags.

use std::collections::BTreeMap;

use fastrand::Rng;
use greenroom::registry::{Group, Name};
use greenroom::{Handle, actor};

use super::replay::all;
use super::{idle, in_simulations};

const SEEDS: u64 = 300;
const STEPS: usize = 60;
const TEXTS: [&str; 3] = ["a", "b", ""];

#[derive(Default)]
struct Model {
    names: BTreeMap<&'static str, u64>,
    groups: BTreeMap<&'static str, Vec<u64>>,
}

impl Model {
    fn end(&mut self, id: u64) {
        self.names.retain(|_, holder| *holder != id);
        self.groups
            .values_mut()
            .for_each(|it| it.retain(|member| *member != id));
    }

    fn register(&mut self, text: &'static str, id: u64) -> bool {
        *self.names.entry(text).or_insert(id) == id
    }

    fn join(&mut self, text: &'static str, id: u64) {
        let members = self.groups.entry(text).or_default();
        if let Err(at) = members.binary_search(&id) {
            members.insert(at, id);
        }
    }

    fn leave(&mut self, text: &'static str, id: u64) -> bool {
        let members = self.groups.entry(text).or_default();
        let found = members.binary_search(&id);
        found.map(|at| members.remove(at)).is_ok()
    }

    fn check(&self) {
        for text in TEXTS {
            let found = Name::<()>::new(text).get().ok().map(|it| it.id());
            assert_eq!(found, self.names.get(text).copied(), "the name {text:?}");
            let members = Group::<()>::new(text).members();
            let members: Vec<_> = members.iter().map(|it| it.id()).collect();
            let expected = self.groups.get(text).cloned().unwrap_or_default();
            assert_eq!(members, expected, "the group {text:?}");
        }
    }
}

async fn steps(mut random: Rng) {
    let spawn = || actor(idle::<()>).spawn();
    let mut actors: [Handle<(), ()>; 4] = [(); 4].map(|()| spawn());
    let mut model = Model::default();
    for _ in 0..STEPS {
        let text = TEXTS[random.usize(..TEXTS.len())];
        let one = &mut actors[random.usize(..4)];
        let (name, group, id) = (Name::new(text), Group::new(text), one.id());
        match random.u8(..6) {
            0 => {
                one.kill();
                one.closed().await;
                model.end(id);
                *one = spawn();
            }
            1 | 2 => assert_eq!(name.register(one).is_ok(), model.register(text, id)),
            3 => assert_eq!(
                Name::<()>::new(text).unregister(),
                model.names.remove(text).is_some()
            ),
            4 => {
                group.join(one).unwrap();
                model.join(text, id);
            }
            _ => assert_eq!(group.leave(one), model.leave(text, id)),
        }
        model.check();
    }
}

#[test]
fn names_and_groups_agree_with_a_naive_model() {
    in_simulations(SEEDS, steps);
}

/// A naive model of tags: that of each member, and what each actor is to receive.
#[derive(Default)]
struct Tags {
    tags: BTreeMap<u64, Option<u8>>,
    expected: BTreeMap<u64, Vec<usize>>,
}

impl Tags {
    /// Tells a message to the members with such a tag. Returns how many these are.
    fn tell(&mut self, message: usize, is_told: impl Fn(Option<u8>) -> bool) -> usize {
        let told = self.tags.iter().filter(|(_, tag)| is_told(**tag));
        told.map(|(id, _)| self.expected.entry(*id).or_default().push(message))
            .count()
    }

    /// Ends an actor, and compares what it has received.
    async fn end(&mut self, actor: Handle<usize, Vec<usize>>) {
        actor.stop();
        actor.closed().await;
        self.tags.remove(&actor.id());
        let expected = self.expected.remove(&actor.id()).unwrap_or_default();
        assert_eq!(actor.join().await.unwrap(), expected);
    }
}

async fn tagged_steps(mut random: Rng) {
    const TOPIC: Group<usize> = Group::new("topic");
    let spawn = || actor(all::<usize>).spawn();
    let (mut actors, mut model) = ([(); 4].map(|()| spawn()), Tags::default());
    for message in 0..STEPS {
        let one = &mut actors[random.usize(..4)];
        let (id, tag) = (one.id(), random.u8(..3));
        match random.u8(..8) {
            0 => model.end(std::mem::replace(one, spawn())).await,
            1 => assert_eq!(TOPIC.leave(one), model.tags.remove(&id).is_some()),
            2 => {
                TOPIC.join(one).unwrap();
                model.tags.insert(id, None);
            }
            3 | 4 => {
                TOPIC.join_tagged(one, tag).unwrap();
                model.tags.insert(id, Some(tag));
            }
            5 => assert_eq!(TOPIC.broadcast(message).sent, model.tell(message, |_| true)),
            6 => {
                let sent = TOPIC.broadcast_to(message, |own: &u8| *own <= tag).sent;
                let told = model.tell(message, |own| own.is_some_and(|own| own <= tag));
                assert_eq!(sent, told);
            }
            // None has a tag of this type.
            _ => assert_eq!(TOPIC.broadcast_to(message, |_: &u16| true).sent, 0),
        }
    }
    for actor in actors {
        model.end(actor).await;
    }
}

#[test]
fn members_are_told_as_a_naive_model_of_their_tags_says() {
    in_simulations(SEEDS, tagged_steps);
}
