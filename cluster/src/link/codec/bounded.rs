//! A deserializer that bounds what a value of another node may have: its depth, and its elements.
//!
//! Without a bound, a type that contains itself could exhaust the stack. A list of empty elements takes
//! no bytes, so a short message could keep the thread of the links busy for years.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// The depth of a value: one for each list, map, variant and field around another.
const MOST_DEPTH: u32 = 256;

/// The elements that lists and maps may have beyond the bytes of the value.
const MOST_EMPTY: usize = 1 << 16;

/// What is left to a value.
pub(super) struct Bounds {
    depth: Cell<u32>,
    elements: Cell<usize>,
}

impl Bounds {
    /// Creates the bounds of a value with so many bytes.
    pub(super) fn new(bytes: usize) -> Bounds {
        Bounds {
            depth: Cell::new(MOST_DEPTH),
            elements: Cell::new(bytes.saturating_add(MOST_EMPTY)),
        }
    }

    /// Returns what is wrong, if a bound was exceeded.
    pub(super) fn problem(&self) -> Option<String> {
        if self.depth.get() == 0 {
            return Some(format!("it is nested more than {MOST_DEPTH} times"));
        }
        let text = format!("its lists have more than {MOST_EMPTY} elements without bytes");
        (self.elements.get() == 0).then_some(text)
    }

    fn count_element<E: Error>(&self) -> Result<(), E> {
        self.elements.set(self.elements.get().saturating_sub(1));
        match self.elements.get() {
            // The error of postcard has no text: `problem` has it.
            0 => Err(E::custom("too many elements")),
            _ => Ok(()),
        }
    }
}

/// Something of serde, within bounds.
pub(super) struct Bounded<'a, T> {
    inner: T,
    bounds: &'a Bounds,
    /// Whether the elements are counted: those of a list or a map, whose number comes with the value.
    is_counted: bool,
}

impl<'a, T> Bounded<'a, T> {
    pub(super) fn new(inner: T, bounds: &'a Bounds) -> Self {
        Bounded {
            inner,
            bounds,
            is_counted: false,
        }
    }

    fn within<U>(&self, inner: U) -> Bounded<'a, U> {
        Bounded::new(inner, self.bounds)
    }

    fn counted<U>(&self, inner: U) -> Bounded<'a, U> {
        Bounded {
            is_counted: true,
            ..self.within(inner)
        }
    }

    fn count<U, E: Error>(&self, element: Option<U>) -> Result<Option<U>, E> {
        if self.is_counted && element.is_some() {
            self.bounds.count_element()?;
        }
        Ok(element)
    }
}

/// Passes calls of a deserializer on, with a visitor within the same bounds.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            let visitor = self.within(visitor);
            self.inner.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    pass_on! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.counted(visitor);
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.counted(visitor);
        self.inner.deserialize_map(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Passes values on to a visitor.
macro_rules! visit {
    ($($method:ident: $type:ty;)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool;
        visit_i8: i8;
        visit_i16: i16;
        visit_i32: i32;
        visit_i64: i64;
        visit_i128: i128;
        visit_u8: u8;
        visit_u16: u16;
        visit_u32: u32;
        visit_u64: u64;
        visit_u128: u128;
        visit_f32: f32;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.within(inner);
        deeper(self.bounds, || self.inner.visit_some(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.within(inner);
        deeper(self.bounds, || self.inner.visit_newtype_struct(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let is_counted = self.is_counted;
        let inner = Bounded {
            is_counted,
            ..self.within(inner)
        };
        deeper(self.bounds, || self.inner.visit_seq(inner))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let is_counted = self.is_counted;
        let inner = Bounded {
            is_counted,
            ..self.within(inner)
        };
        deeper(self.bounds, || self.inner.visit_map(inner))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let inner = self.within(inner);
        deeper(self.bounds, || self.inner.visit_enum(inner))
    }
}

/// Calls `visit` one level deeper.
fn deeper<T, E: Error>(bounds: &Bounds, visit: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // A `Deserialize` may go on after an error.
    let left = bounds.depth.get().saturating_sub(1);
    bounds.depth.set(left);
    if left == 0 {
        return Err(E::custom("too deep"));
    }
    let visited = visit();
    // After an error the rest is not read, and 0 stays for `problem`.
    if visited.is_ok() {
        bounds.depth.set(left + 1);
    }
    visited
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.within(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        let seed = self.within(seed);
        let next = self.inner.next_element_seed(seed)?;
        self.count(next)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let seed = self.within(seed);
        let next = self.inner.next_key_seed(seed)?;
        self.count(next)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        let seed = self.within(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'a, A> {
    type Error = A::Error;
    type Variant = Bounded<'a, A::Variant>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), A::Error> {
        let (seed, bounds) = (self.within(seed), self.bounds);
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Bounded::new(variant, bounds)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        let seed = self.within(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.within(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.within(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use postcard::to_allocvec;
    use serde::{Deserialize, Serialize};

    use crate::fuzzing::Desk;
    use crate::link::decode;

    #[derive(Serialize, Deserialize)]
    struct Nest(Option<Box<Nest>>);

    #[test]
    fn a_value_that_is_nested_too_deeply_is_an_error() {
        let (_desk, link, _wire) = Desk::link();
        let nested = |levels| [vec![1; levels], vec![0]].concat();
        let mut nest = decode::<Nest>(&link, &nested(100)).unwrap();
        let mut levels = 0;
        while let Some(inner) = nest.0.take() {
            nest = *inner;
            levels += 1;
        }
        assert_eq!(levels, 100);
        let why = decode::<Nest>(&link, &nested(1 << 20));
        assert_eq!(why.err().unwrap(), "it is nested more than 256 times");
    }

    /// A value whose levels take much of the stack.
    #[derive(Serialize, Deserialize)]
    struct Wide([[[u64; 16]; 16]; 8], Option<Box<Wide>>);

    #[test]
    fn a_value_whose_levels_take_too_much_of_the_stack_is_an_error() {
        let (_desk, link, _wire) = Desk::link();
        let level = [vec![0; 8 * 16 * 16], vec![1]].concat();
        let why = decode::<Wide>(&link, &level.repeat(100));
        let why = why.err().unwrap();
        assert!(why.contains("more than 512 KiB of stack"), "{why}");
    }

    #[test]
    fn a_list_of_elements_without_bytes_is_an_error_if_it_is_long() {
        let (_desk, link, _wire) = Desk::link();
        let list = |count: u64| to_allocvec(&count).unwrap();
        let empty = decode::<Vec<()>>(&link, &list(10_000)).unwrap();
        assert_eq!(empty.len(), 10_000);
        for count in [100_000, u64::MAX] {
            let why = decode::<Vec<()>>(&link, &list(count));
            let text = "its lists have more than 65536 elements without bytes";
            assert_eq!(why.err().unwrap(), text);
        }
        // Those that have bytes are not counted.
        let bytes = to_allocvec(&vec![(1_u8, ()); 500_000]).unwrap();
        let long = decode::<Vec<(u8, ())>>(&link, &bytes).unwrap();
        assert_eq!(long.len(), 500_000);
    }
}
