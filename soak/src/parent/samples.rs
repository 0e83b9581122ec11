//! What a process takes over time, and whether that grows.

/// What a process takes at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident, in KiB.
    pub memory: u64,
    pub threads: u64,
    pub descriptors: u64,
}

/// What a process took, each with the part of the run that was over.
#[derive(Default)]
pub struct Samples(Vec<(f64, Usage)>);

/// The medians of two windows, and the greatest value of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    pub early: u64,
    pub late: u64,
    pub most: u64,
}

/// The windows, as parts of the run.
const EARLY: std::ops::Range<f64> = 0.2..0.3;
const LATE: std::ops::Range<f64> = 0.9..1.0;

/// What memory may grow by, in KiB beside a tenth: pages that a heap keeps.
const KIB: u64 = 4096;

/// What threads and descriptors may grow by: those that come and go.
const FEW: u64 = 4;

impl Samples {
    pub fn add(&mut self, at: f64, taken: Usage) {
        self.0.push((at, taken));
    }

    /// Returns the courses of memory, threads and descriptors.
    pub fn courses(&self) -> [Course; 3] {
        [
            self.course(|taken| taken.memory),
            self.course(|taken| taken.threads),
            self.course(|taken| taken.descriptors),
        ]
    }

    fn course(&self, of: impl Fn(&Usage) -> u64) -> Course {
        let median = |window: std::ops::Range<f64>| {
            let inside = self.0.iter().filter(|(at, _)| window.contains(at));
            let mut values: Vec<u64> = inside.map(|(_, taken)| of(taken)).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        Course {
            early: median(EARLY),
            late: median(LATE),
            most: self
                .0
                .iter()
                .map(|(_, taken)| of(taken))
                .max()
                .unwrap_or_default(),
        }
    }

    /// Returns a sentence for each of them that grows.
    pub fn growth(&self, process: &str) -> Vec<String> {
        let [memory, threads, descriptors] = self.courses();
        let allowed = [memory.early / 10 + KIB, FEW, FEW];
        let names = ["KiB of memory", "threads", "descriptors"];
        let courses = [memory, threads, descriptors]
            .into_iter()
            .zip(allowed)
            .zip(names);
        let grows = courses.filter(|((course, allowed), _)| course.late > course.early + allowed);
        grows
            .map(|((Course { early, late, .. }, _), name)| {
                format!("{process}: from {early} to {late} {name}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Course, Samples, Usage};

    /// Returns samples at a thousand moments.
    fn samples(of: impl Fn(u64) -> Usage) -> Samples {
        let mut samples = Samples::default();
        for step in 0..1000 {
            samples.add(step as f64 / 1000.0, of(step));
        }
        samples
    }

    const FLAT: Usage = Usage {
        memory: 50_000,
        threads: 10,
        descriptors: 30,
    };

    #[test]
    fn what_stays_is_flat_whatever_its_begin_and_its_peaks_are() {
        let samples = samples(|step| match step {
            0..200 => Usage {
                memory: 1000,
                threads: 1,
                descriptors: 3,
            },
            _ if step % 10 == 0 => Usage {
                memory: 500_000,
                threads: 100,
                descriptors: 1000,
            },
            _ => FLAT,
        });
        assert_eq!(samples.growth("flat"), Vec::<String>::new());
        let [memory, ..] = samples.courses();
        let course = Course {
            early: 50_000,
            late: 50_000,
            most: 500_000,
        };
        assert_eq!(memory, course);
    }

    #[test]
    fn what_grows_without_end_is_named() {
        let samples = samples(|step| Usage {
            memory: FLAT.memory + 20 * step,
            threads: FLAT.threads + step / 100,
            descriptors: FLAT.descriptors + step / 10,
        });
        let sentences = samples.growth("a");
        assert_eq!(sentences.len(), 3, "{sentences:?}");
        assert_eq!(sentences[0], "a: from 55000 to 69000 KiB of memory");
    }

    #[test]
    fn what_grows_a_little_is_flat() {
        let samples = samples(|step| Usage {
            memory: FLAT.memory + 10 * step,
            threads: FLAT.threads + step / 200,
            descriptors: FLAT.descriptors,
        });
        assert_eq!(samples.growth("a"), Vec::<String>::new());
    }
}
