//! The options of a run, from the command line.

use std::path::PathBuf;

use lexopt::prelude::{Long, Value, ValueExt};

/// The time of the run that is in `docs/endurance.md`.
const MINUTES: u64 = 120;

/// The variable with the program `nats-server`.
const PROGRAM: &str = "GREENROOM_NATS_SERVER";

#[derive(Debug, PartialEq, Eq)]
pub struct RunOptions {
    pub minutes: u64,
    pub seed: u64,
    pub nats: Option<PathBuf>,
}

impl RunOptions {
    /// Reads the options of this process, whose first argument is `run`.
    pub fn read() -> Result<Self, lexopt::Error> {
        let mut options = RunOptions::parse(std::env::args_os().skip(2))?;
        let of_variable = || std::env::var_os(PROGRAM).map(PathBuf::from);
        options.nats = options.nats.or_else(of_variable);
        Ok(options)
    }

    fn parse<I>(words: I) -> Result<Self, lexopt::Error>
    where
        I: IntoIterator<Item: Into<std::ffi::OsString>>,
    {
        let mut options = RunOptions {
            minutes: MINUTES,
            seed: fastrand::u64(..1_000_000),
            nats: None,
        };
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(word) = parser.next()? {
            match word {
                Long("seed") => options.seed = parser.value()?.parse()?,
                Long("nats") => options.nats = Some(parser.value()?.into()),
                Value(minutes) => options.minutes = minutes.parse()?,
                other => return Err(other.unexpected()),
            }
        }
        match options.minutes {
            0 => Err("a run takes at least a minute".into()),
            _ => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RunOptions;

    #[test]
    fn options_are_read_in_any_order() {
        let options = RunOptions::parse(["--seed", "7", "3", "--nats", "a/b"]).unwrap();
        let expected = RunOptions {
            minutes: 3,
            seed: 7,
            nats: Some("a/b".into()),
        };
        assert_eq!(options, expected);
        assert_eq!(RunOptions::parse::<[&str; 0]>([]).unwrap().minutes, 120);
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        for words in [&["soon"][..], &["0"], &["--seed"], &["--fast"]] {
            assert!(RunOptions::parse(words).is_err(), "{words:?}");
        }
    }
}
