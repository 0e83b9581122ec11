//! The matrix: in which homes, with which seeds and on how many workers a scenario runs.
//!
//! A scenario has up to five homes, a simulation twenty seeds, a policy three worker counts. By
//! default each scenario runs in two homes, with three seeds, on two worker counts: the whole
//! matrix takes minutes and seldom finds more. The two homes follow from the scenario's name, so
//! every home gets its share of the scenarios.
//!
//! The variable `GREENROOM_MATRIX` selects more: `all`, or `threads`, which leaves out the
//! simulations.

use super::{Home, simulated};

use greenroom::{Builder, Runtime};

/// The selected part of the matrix.
#[derive(Clone, Copy, PartialEq)]
enum Matrix {
    Thin,
    Threads,
    All,
}

impl Matrix {
    fn chosen() -> Matrix {
        match std::env::var("GREENROOM_MATRIX").as_deref() {
            Err(std::env::VarError::NotPresent) => Matrix::Thin,
            Ok("threads") => Matrix::Threads,
            Ok("all") => Matrix::All,
            other => panic!("GREENROOM_MATRIX must be `all`, `threads` or unset, not {other:?}"),
        }
    }
}

/// Returns the seeds of a simulation.
pub fn seeds() -> &'static [u64] {
    match Matrix::chosen() {
        Matrix::All => &simulated::SEEDS,
        _ => &simulated::FEW_SEEDS,
    }
}

/// Returns the worker counts on which each policy runs a scenario that needs `at_least` workers.
pub fn workers(at_least: usize) -> impl Iterator<Item = usize> {
    let chosen: &[usize] = match Matrix::chosen() {
        Matrix::Thin if at_least <= 1 => &[1, 4],
        _ => &[1, 2, 4],
    };
    chosen.iter().copied().filter(move |&n| n >= at_least)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    OneWorker,
    TwoWorkers,
    Pinned,
    Simulated,
    SimulatedPinned,
}

const ON_THREADS: [Kind; 3] = [Kind::OneWorker, Kind::TwoWorkers, Kind::Pinned];
const SIMULATED: [Kind; 2] = [Kind::Simulated, Kind::SimulatedPinned];

/// The homes that a scenario runs in.
pub struct Homes {
    builder: fn() -> Builder,
    on_threads: bool,
    simulated: bool,
}

impl Homes {
    /// Returns all five homes. Faults that are not joined are not printed.
    pub fn plain() -> Homes {
        Homes::built(|| Runtime::builder().on_fault(|_| {}))
    }

    /// Returns all five homes; those on threads have these options.
    pub fn built(builder: fn() -> Builder) -> Homes {
        Homes {
            builder,
            on_threads: true,
            simulated: true,
        }
    }

    pub fn without_simulations(self) -> Homes {
        Homes {
            simulated: false,
            ..self
        }
    }

    pub fn without_threads(self) -> Homes {
        Homes {
            on_threads: false,
            ..self
        }
    }

    /// Runs the scenario of this name in those of its homes that the matrix selects.
    pub fn watch(&self, name: &str, scenario: fn(&Home)) {
        let kinds = self.kinds(Matrix::chosen(), name);
        assert!(!kinds.is_empty(), "this matrix has no home for {name}");
        for kind in kinds {
            let _named = Named(format!("{kind:?}"));
            let builder = self.builder;
            match kind {
                Kind::OneWorker => Home::watch(move || Home::built(1, builder()), scenario),
                Kind::TwoWorkers => Home::watch(move || Home::built(2, builder()), scenario),
                Kind::Pinned => Home::watch(move || Home::pinned_built(builder()), scenario),
                Kind::Simulated => Home::watch_seeds(Home::simulated, scenario),
                Kind::SimulatedPinned => Home::watch_seeds(Home::simulated_pinned, scenario),
            }
        }
    }

    fn kinds(&self, matrix: Matrix, name: &str) -> Vec<Kind> {
        let draw = hash(name);
        let (one, other) = (ON_THREADS[draw % 3], ON_THREADS[(draw + 1) % 3]);
        match (matrix, self.on_threads, self.simulated) {
            (Matrix::Thin, true, true) => vec![one, SIMULATED[draw / 3 % 2]],
            (Matrix::Thin, true, false) => vec![one, other],
            (Matrix::Threads | Matrix::All, true, false) | (Matrix::Threads, true, true) => {
                ON_THREADS.to_vec()
            }
            (Matrix::Threads, false, _) => Vec::new(),
            (Matrix::Thin | Matrix::All, false, _) => SIMULATED.to_vec(),
            (Matrix::All, true, true) => [&ON_THREADS[..], &SIMULATED].concat(),
        }
    }
}

/// Returns the FNV-1a hash: the same on every machine, and different for names that differ by a
/// letter.
fn hash(name: &str) -> usize {
    let mixed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed >> 40) as usize
}

/// A guard that prints where the scenario failed if it is dropped by a panic.
pub struct Named(pub String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

#[test]
fn thin_matrix_gives_each_pair_of_homes_its_share() {
    let names: Vec<String> = (0..600).map(|n| format!("a_scenario_{n}")).collect();
    let share = |one, other| {
        let has = |name: &&String| Homes::plain().kinds(Matrix::Thin, name) == [one, other];
        names.iter().filter(has).count()
    };
    for one in ON_THREADS {
        for other in SIMULATED {
            assert!(share(one, other) > 60, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn every_matrix_selects_the_number_of_homes_that_it_promises() {
    let kinds = |homes: Homes, matrix| homes.kinds(matrix, "a_scenario").len();
    let counts = |homes: fn() -> Homes| {
        [Matrix::Thin, Matrix::Threads, Matrix::All].map(|matrix| kinds(homes(), matrix))
    };
    assert_eq!(counts(Homes::plain), [2, 3, 5]);
    assert_eq!(counts(|| Homes::plain().without_simulations()), [2, 3, 3]);
    assert_eq!(counts(|| Homes::plain().without_threads()), [2, 0, 2]);
}
