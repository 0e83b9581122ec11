//! The command line: the options, and the help text.
//!
//! A value of `Options` is complete and valid: the query is one line and not empty, the path of the
//! index is absolute. Everything else is refused here, before any file is opened.

use std::ffi::OsString;
use std::path::{self, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use lexopt::prelude::*;

use crate::query::Query;

/// The text that `--help` prints.
pub const HELP: &str = "\
Index the text files under a directory and print the lines that contain a string.

Usage: code_search [OPTIONS] [--] DIR QUERY

Prints every line under DIR that contains QUERY as 'path:line: text', sorted by
path and line. The first run reads every file; later runs read what has changed
since, forget what is gone, and answer from the index.

Arguments:
  DIR    the directory to search, with all that is below it, hidden files too
  QUERY  one literal string, case-sensitive, without a newline

Options:
  --index FILE    keep the index in FILE, an SQLite database; one file serves any
                  number of directories [default: greenroom/code_search.db in
                  your cache directory, such as ~/.cache]
  --wait SECONDS  how long to wait while another process writes to the index
                  [default: 10]
  -h, --help      print this text

A DIR or QUERY that begins with '-' is written after '--'.

What is searched: regular files that are valid UTF-8, hold no NUL and are at most
16 MiB. Symbolic links are not followed, and nothing but regular files is opened.
Files that were left out are listed on stderr at the end. A query of one or two
characters is no use to the index, so for it the stored lines are read through.

A file is read again if its size, its inode or one of its times (mtime, ctime) has
changed. One that was written to within 10 ms of being read is read again by the
next run, because a later change might bear the same time. What the index holds of
a directory that is no longer searched stays until FILE is deleted.

Ctrl-C stops in order: what was read is kept, and the next run continues there.
Ctrl-C again quits at once; only what was not yet committed is lost.

Exit status:
  0    a line was found
  1    no line was found
  2    trouble: wrong usage, no such directory, an index that cannot be used
  130  stopped by Ctrl-C
Files that could not be read are listed and do not change the status.
";

/// A parsed command line.
#[derive(Debug)]
pub enum Command {
    /// Print the help.
    Help,
    /// Search.
    Search(Options),
}

/// The options of one search.
#[derive(Debug)]
pub struct Options {
    /// The directory as it was typed: hits begin with it.
    pub dir: PathBuf,
    /// The string to find.
    pub query: Query,
    /// The absolute path of the index.
    pub index: PathBuf,
    /// How long to wait for another process that writes to the index.
    pub wait: Duration,
}

/// Parses the command line, without the name of the program.
///
/// # Errors
/// A text that says what is wrong with it.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut values = Vec::new();
    let mut index = None;
    let mut wait = Duration::from_secs(10);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("index") => {
                let file = parser.value().map_err(|error| error.to_string())?;
                index = Some(PathBuf::from(file));
            }
            Long("wait") => {
                let seconds = parser.value().and_then(|value| value.parse::<u32>());
                let seconds = seconds.map_err(|error| format!("--wait: {error}"))?;
                wait = Duration::from_secs(seconds.into());
            }
            Value(value) => values.push(value),
            other => {
                let error = other.unexpected();
                return Err(format!("{error} (a DIR or QUERY like it goes after '--')"));
            }
        }
    }
    let [dir, query]: [OsString; 2] = values
        .try_into()
        .map_err(|values: Vec<_>| format!("two arguments are needed, {} given", values.len()))?;
    if dir.is_empty() {
        return Err("DIR is empty".to_owned());
    }
    let query = query
        .into_string()
        .map_err(|_| "QUERY is not valid UTF-8".to_owned())?;
    Ok(Command::Search(Options {
        dir: PathBuf::from(dir),
        query: Query::new(query)?,
        index: index_path(index)?,
        wait,
    }))
}

/// Returns the absolute path of the given index, or of the one in the user's cache directory. It is
/// absolute because SQLite gives names such as `:memory:` and `file:..` a special meaning.
fn index_path(named: Option<PathBuf>) -> Result<PathBuf, String> {
    let path = match named {
        Some(path) if path.as_os_str().is_empty() => return Err("--index is empty".to_owned()),
        Some(path) => path,
        None => etcetera::choose_base_strategy()
            .map_err(|error| format!("no cache directory ({error}): name a file with --index"))?
            .cache_dir()
            .join("greenroom/code_search.db"),
    };
    path::absolute(&path).map_err(|error| format!("--index {}: {error}", path.display()))
}
