//! The names of types without paths, and how an actor without a name is called.
//!
//! Of a type that is local to a function or closure, only its own name is left. An actor without a
//! name is called after its function or type.

use std::any::type_name;
use std::borrow::Cow;

/// The names of the types of an actor or a task, with their paths.
///
/// The table of a cell has a function that returns them. So a name is made only where it is shown.
pub(crate) struct TypeNames {
    future: &'static str,
    /// Of the function, closure or value.
    actor: &'static str,
}

impl TypeNames {
    pub(crate) fn of<Fut, A>() -> Self {
        TypeNames {
            future: type_name::<Fut>(),
            actor: type_name::<A>(),
        }
    }

    /// Returns the names for a plain task, which has one type.
    pub(crate) fn of_task<Of>() -> Self {
        let name = type_name::<Of>();
        // A large future is boxed, and one with values has them around it.
        let name = within(name, "greenroom::task_local::LocalScope<", ">");
        let name = within(name, "core::pin::Pin<alloc::boxed::Box<", ">>");
        TypeNames {
            future: name,
            actor: name,
        }
    }

    /// Returns a name for the actor or task.
    pub(crate) fn called(&self) -> Cow<'static, str> {
        called(self.future, self.actor)
    }
}

/// Returns what is between the two, or the whole name.
fn within(name: &'static str, before: &str, after: &str) -> &'static str {
    let rest = name.strip_prefix(before);
    rest.and_then(|it| it.strip_suffix(after)).unwrap_or(name)
}

/// The suffix of the name of a closure, and of the future of an `async fn`.
const CLOSURE: &str = "::{{closure}}";

/// Returns a name for an actor, from the names of the types of its future and of its function or
/// value.
fn called(future: &'static str, actor: &'static str) -> Cow<'static, str> {
    let mut name = future;
    // The futures of this crate wrap those of the user. The one of an actor that is restarted has
    // the types of the actor and of its future at the end, any other has not. A boxed future tells
    // nothing of its function.
    if ["greenroom::", "core::", "alloc::"]
        .iter()
        .any(|own| name.starts_with(own))
    {
        name = match types_in(future)[..] {
            [.., actor, future] if future.contains("::") => return called(future, actor),
            // A plain task whose future is none of the user's, or is boxed.
            _ if actor == "()" => future,
            _ => actor,
        };
        // A machine is called after its value, which is spawned with the first state.
        name = name.strip_prefix('(').unwrap_or(name);
    }
    let end = name.find(['<', '>', ',']).unwrap_or(name.len());
    short(name[..end].trim_end_matches(CLOSURE))
}

/// Returns the names of the generic arguments in the name of a type.
fn types_in(name: &str) -> Vec<&str> {
    let (Some(open), Some(close)) = (name.find('<'), name.rfind('>')) else {
        return Vec::new();
    };
    let (mut types, mut depth, mut before) = (Vec::new(), 0, ' ');
    let inner = &name[open + 1..close];
    let mut start = 0;
    for (at, c) in inner.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // Not of `->`.
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                types.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    types.push(inner[start..].trim());
    types
}

/// Returns the name of a type without paths. Of a type that is local to a function or closure, only
/// its own name is left.
pub(crate) fn short(name: &str) -> Cow<'_, str> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '{' | '}' | '#');
    if name.chars().all(|c| is_word(c) || c == ':') {
        return Cow::Borrowed(name.rsplit("::").next().unwrap_or(name));
    }
    let mut short = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(word.max(first.len_utf8()));
        // The path continues.
        rest = match tail.strip_prefix("::") {
            Some(after) if word > 0 => after,
            _ => {
                short.push_str(head);
                tail
            }
        };
    }
    Cow::Owned(short)
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use super::short;

    #[test]
    fn short_drops_all_paths_of_a_type_name() {
        for (name, shown) in [
            ("u32", "u32"),
            ("bank::Account", "Account"),
            ("bank::audit::{{closure}}::Message", "Message"),
            (
                "bank::audit::{{closure}}::{{closure}}#1::Message",
                "Message",
            ),
            ("core::option::Option<a::b::C>", "Option<C>"),
            ("(a::B, &[c::D; 3])", "(B, &[D; 3])"),
            ("fn(a::B) -> c::D", "fn(B) -> D"),
            ("dyn a::B<c::D> + e::F", "dyn B<D> + F"),
            ("a::f::{{closure}}", "{{closure}}"),
        ] {
            assert_eq!(short(name), shown);
        }
    }
}
