//! How JSON is read: its limits, which are checked before, and the form of its maps.

use super::problem::DecodeProblem;
use super::strict::MapForm;

/// How deep and how long JSON may be, and how it has maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonRules {
    pub(crate) depth: usize,
    /// The number of elements of one list, or members of one object.
    pub(crate) list: usize,
    /// Maps may be lists of pairs, or are objects alone.
    pub(crate) maps: MapForm,
}

impl JsonRules {
    /// Checks bytes that may be JSON. Says nothing about whether they are.
    pub(crate) fn check(self, json: &[u8]) -> Result<(), DecodeProblem> {
        // The commas seen so far in each open list.
        let mut open: Vec<usize> = Vec::new();
        let (mut is_string, mut is_escaped) = (false, false);
        for byte in json {
            if is_string {
                is_string = is_escaped || *byte != b'"';
                is_escaped = !is_escaped && *byte == b'\\';
                continue;
            }
            match byte {
                b'"' => is_string = true,
                b'[' | b'{' if open.len() >= self.depth => {
                    let depth = self.depth;
                    return Err(DecodeProblem::of_limit(
                        "depth",
                        format!("JSON is deeper than {depth}"),
                    ));
                }
                b'[' | b'{' => open.push(0),
                b']' | b'}' => drop(open.pop()),
                b',' => {
                    let Some(commas) = open.last_mut() else {
                        continue;
                    };
                    *commas += 1;
                    if *commas >= self.list {
                        let list = self.list;
                        return Err(DecodeProblem::of_limit(
                            "list",
                            format!("a list is longer than {list}"),
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{JsonRules, MapForm};

    const RULES: JsonRules = JsonRules {
        depth: 3,
        list: 4,
        maps: MapForm::Object,
    };

    fn is_ok(json: &str) -> bool {
        RULES.check(json.as_bytes()).is_ok()
    }

    #[test]
    fn depth_and_length_are_limited_outside_of_strings() {
        assert!(is_ok("[[[]], [{}], {}, 4]"));
        assert!(!is_ok("[[[[]]]]"));
        assert!(!is_ok("[1,2,3,4,5]"));
        assert!(is_ok(r#"["[[[[[[,,,,,,", "\"[[[[,,,,,", "\\"]"#));
        assert!(!is_ok(r#"["\\", [[[1]]]]"#));
        assert!(is_ok("]]]],,,,"));
    }
}
