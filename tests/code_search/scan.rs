//! The plain scan with which the program's hits are compared.
//!
//! It walks and reads independently of the program, with nothing but the standard library and the
//! definition of text: a regular file, not a link, valid UTF-8, no NUL, at most 16 MiB.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the path below `root` (in bytes) and the text of every text file below `root`, sorted by
/// path.
pub fn texts(root: &Path) -> Vec<(Vec<u8>, String)> {
    let mut texts = Vec::new();
    collect(root, root, &mut texts);
    texts.sort();
    texts
}

fn collect(root: &Path, directory: &Path, texts: &mut Vec<(Vec<u8>, String)>) {
    for entry in fs::read_dir(directory).expect("a directory that can be listed") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        if metadata.is_dir() {
            collect(root, &path, texts);
        } else if metadata.is_file() && metadata.len() <= 16 * 1024 * 1024 {
            let bytes = fs::read(&path).expect("a file that can be read");
            if let (Ok(text), false) = (String::from_utf8(bytes.clone()), bytes.contains(&0)) {
                let below = path.strip_prefix(root).expect("below the root");
                texts.push((below.as_os_str().as_bytes().to_vec(), text));
            }
        }
    }
}

/// Returns the output that the program must print for `query`.
pub fn hits(root: &Path, query: &str) -> String {
    let mut hits = String::new();
    for (path, text) in texts(root) {
        let path = String::from_utf8(path).expect("a path in UTF-8");
        for (number, line) in (1..).zip(text.split('\n')) {
            if line.contains(query) {
                hits.push_str(&format!("{}/{path}:{number}: {line}\n", root.display()));
            }
        }
    }
    hits
}
