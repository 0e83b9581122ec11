//! The names that types have in the envelope of layer_cake, such as `vector<float8>`.

use std::any::type_name;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, SystemTime};

/// A type with a name in the envelope of layer_cake.
///
/// It is implemented for types of `std`, and by [`portable!`](crate::portable) for one's own. Pass
/// the name of an answer to [`name`](crate::ServerBuilder::name): `.name(&Xy::portable())`. Without
/// it, a type that is not of `std` has its path as its name.
///
/// ```
/// use greenroom_http::{PortableType, portable};
///
/// struct Xy;
/// portable!(Xy, "test_api.Xy");
///
/// assert_eq!(Vec::<Vec<f64>>::portable(), "vector<vector<float8>>");
/// assert_eq!(Option::<Xy>::portable(), "test_api.Xy");
/// ```
pub trait PortableType {
    /// Returns the name.
    fn portable() -> Cow<'static, str>;
}

/// Gives a type its name in the envelope of layer_cake, as [`PortableType`].
///
/// ```
/// struct Xy;
/// greenroom_http::portable!(Xy, "test_api.Xy");
/// ```
#[macro_export]
macro_rules! portable {
    ($type:ty, $name:expr) => {
        impl $crate::PortableType for $type {
            fn portable() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed($name)
            }
        }
    };
}

macro_rules! names {
    ($($name:literal: $($type:ty)*;)*) => {
        $($(portable!($type, $name);)*)*

        /// Returns the name of a type of `std` without parameters.
        fn simple(type_name: &str) -> Option<&'static str> {
            $($(if type_name == ::std::any::type_name::<$type>() {
                return Some($name);
            })*)*
            None
        }
    };
}

// The numbers of layer_cake have one size each.
names! {
    "boolean": bool;
    "integer8": i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize;
    "float8": f32 f64;
    "unicode": char String &str;
    "timespan": Duration;
    "clock": SystemTime;
    "none": ();
}

macro_rules! generic {
    ($($name:literal: $([$($parameter:ident)*] $type:ty;)*)*) => {
        $($(impl<$($parameter: PortableType),*> PortableType for $type {
            fn portable() -> Cow<'static, str> {
                let parameters: &[Cow<'static, str>] = &[$($parameter::portable()),*];
                with_parameters($name, parameters)
            }
        })*)*
    };
}

generic! {
    "": [T] Option<T>; [T] Box<T>;
    "vector": [T] Vec<T>; [T] &[T];
    "deque": [T] VecDeque<T>;
    "set": [T] HashSet<T>; [T] BTreeSet<T>;
    "map": [K V] HashMap<K, V>; [K V] BTreeMap<K, V>;
}

impl<T: PortableType, const N: usize> PortableType for [T; N] {
    fn portable() -> Cow<'static, str> {
        Cow::Owned(format!("array<{},{N}>", T::portable()))
    }
}

fn with_parameters(name: &str, parameters: &[Cow<'static, str>]) -> Cow<'static, str> {
    match (name, parameters) {
        ("", [inner]) => inner.clone(),
        _ => Cow::Owned(format!("{name}<{}>", parameters.join(","))),
    }
}

/// Returns the name of any type: that of a type of `std`, or the type's path with dots.
///
/// What it knows of the type is what the compiler calls it.
pub(crate) fn name_of<T: ?Sized>() -> String {
    name(type_name::<T>())
}

fn name(type_name: &str) -> String {
    if let Some(name) = simple(type_name) {
        return name.to_owned();
    }
    let (path, parameters) = match type_name.strip_suffix('>') {
        Some(rest) => rest.split_once('<').unwrap_or((type_name, "")),
        None => (type_name, ""),
    };
    let word = match path.rsplit("::").next().unwrap_or(path) {
        _ if !is_of_std(path) => None,
        "Option" | "Box" | "Arc" | "Rc" => Some(""),
        "Vec" => Some("vector"),
        "VecDeque" => Some("deque"),
        "HashSet" | "BTreeSet" => Some("set"),
        "HashMap" | "BTreeMap" => Some("map"),
        _ => None,
    };
    let Some(word) = word else {
        return path.replace("::", ".");
    };
    // A map has two parameters, the others one; what hashes or allocates is no part of a name.
    let most = if word == "map" { 2 } else { 1 };
    let names = split(parameters).into_iter().take(most);
    let names: Vec<_> = names.map(|it| Cow::Owned(name(it))).collect();
    with_parameters(word, &names).into_owned()
}

fn is_of_std(path: &str) -> bool {
    ["alloc::", "core::", "std::"]
        .iter()
        .any(|it| path.starts_with(it))
}

/// Splits the parameters of a type at the commas between them.
fn split(parameters: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, sign) in parameters.char_indices() {
        match sign {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(parameters[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(parameters[begin..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};

    use super::{PortableType, name_of};

    struct Own;

    fn both<T: PortableType>() -> String {
        assert_eq!(name_of::<T>(), T::portable());
        name_of::<T>()
    }

    #[test]
    fn types_of_std_have_the_names_of_layer_cake() {
        assert_eq!(both::<Vec<Vec<f64>>>(), "vector<vector<float8>>");
        assert_eq!(
            both::<HashMap<String, Option<u8>>>(),
            "map<unicode,integer8>"
        );
        assert_eq!(
            both::<BTreeMap<u8, HashSet<bool>>>(),
            "map<integer8,set<boolean>>"
        );
        assert_eq!(both::<Box<Vec<()>>>(), "vector<none>");
        assert_eq!(both::<&str>(), "unicode");
    }

    #[test]
    fn other_types_have_their_paths() {
        let path = name_of::<Own>();
        assert_eq!(path, "greenroom_http.values.portable.tests.Own");
        assert_eq!(name_of::<Vec<Own>>(), format!("vector<{path}>"));
    }
}
