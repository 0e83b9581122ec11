//! Names beside a naive model: a map from texts to actors.

use std::collections::BTreeMap;

use fastrand::Rng;
use greenroom::registry::{Group, Name};
use greenroom::{Handle, actor};

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
