//! Values as JSON: a number that JSON does not have is an error, and maps may be lists of pairs.
//!
//! serde_json writes NaN and infinity as `null`, which no reader can tell from a value that is not there.

use serde::ser::{self, Error, Serialize, Serializer};
use serde_json::Value;

/// How maps are written. Structs are objects in any case, but those with `#[serde(flatten)]`: serde writes
/// them as maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapForm {
    Object,
    /// `[["a",1]]`, as layer_cake does.
    Pairs,
}

/// A value that is written strictly.
pub(crate) struct Strict<'a, T: ?Sized>(pub(crate) &'a T, pub(crate) MapForm);

impl<T: Serialize + ?Sized> Serialize for Strict<'_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        let maps = self.1;
        self.0.serialize(StrictSerializer { inner, maps })
    }
}

struct StrictSerializer<S> {
    inner: S,
    maps: MapForm,
}

/// Returns an error unless JSON has the number.
fn check<E: Error>(number: f64) -> Result<(), E> {
    match number.is_finite() {
        true => Ok(()),
        false => Err(E::custom(format_args!("JSON has no number {number}"))),
    }
}

/// Calls a method of the inner serializer.
macro_rules! forward {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )*};
}

impl<S: Serializer> Serializer for StrictSerializer<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = StrictParts<S::SerializeSeq>;
    type SerializeTuple = StrictParts<S::SerializeTuple>;
    type SerializeTupleStruct = StrictParts<S::SerializeTupleStruct>;
    type SerializeTupleVariant = StrictParts<S::SerializeTupleVariant>;
    type SerializeMap = StrictMap<S>;
    type SerializeStruct = StrictParts<S::SerializeStruct>;
    type SerializeStructVariant = StrictParts<S::SerializeStructVariant>;

    forward! {
        serialize_bool: bool;
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_i128: i128;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_u128: u128;
        serialize_char: char;
        serialize_str: &str;
        serialize_bytes: &[u8];
        serialize_unit_struct: &'static str;
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        check(value.into())?;
        self.inner.serialize_f32(value)
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        check(value)?;
        self.inner.serialize_f64(value)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&Strict(value, self.maps))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = Strict(value, self.maps);
        self.inner.serialize_newtype_struct(name, &value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = Strict(value, self.maps);
        self.inner
            .serialize_newtype_variant(name, index, variant, &value)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let inner = self.inner.serialize_seq(length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        let inner = self.inner.serialize_tuple(length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let inner = self.inner.serialize_tuple_struct(name, length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let inner = self
            .inner
            .serialize_tuple_variant(name, index, variant, length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<StrictMap<S>, S::Error> {
        Ok(match self.maps {
            MapForm::Object => StrictMap::Object(self.inner.serialize_map(length)?),
            MapForm::Pairs => StrictMap::Pairs(self.inner.serialize_seq(length)?, None),
        })
    }

    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let inner = self.inner.serialize_struct(name, length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let inner = self
            .inner
            .serialize_struct_variant(name, index, variant, length)?;
        Ok(StrictParts::new(inner, self.maps))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// The parts of a value that has several.
struct StrictParts<P> {
    inner: P,
    maps: MapForm,
}

impl<P> StrictParts<P> {
    fn new(inner: P, maps: MapForm) -> Self {
        StrictParts { inner, maps }
    }
}

macro_rules! parts {
    ($($part:ident $method:ident $(($key:ident: $type:ty))?;)*) => {$(
        impl<P: ser::$part> ser::$part for StrictParts<P> {
            type Ok = P::Ok;
            type Error = P::Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: $type,)?
                value: &T,
            ) -> Result<(), P::Error> {
                self.inner.$method($($key,)? &Strict(value, self.maps))
            }

            fn end(self) -> Result<P::Ok, P::Error> {
                self.inner.end()
            }
        }
    )*};
}

parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
    SerializeStruct serialize_field (key: &'static str);
    SerializeStructVariant serialize_field (key: &'static str);
}

enum StrictMap<S: Serializer> {
    Object(S::SerializeMap),
    /// With the key whose value comes next.
    Pairs(S::SerializeSeq, Option<Value>),
}

impl<S: Serializer> ser::SerializeMap for StrictMap<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        match self {
            StrictMap::Object(map) => {
                ser::SerializeMap::serialize_key(map, &Strict(key, MapForm::Object))
            }
            StrictMap::Pairs(_, next) => {
                let key = serde_json::to_value(Strict(key, MapForm::Pairs));
                *next = Some(key.map_err(S::Error::custom)?);
                Ok(())
            }
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        match self {
            StrictMap::Object(map) => {
                ser::SerializeMap::serialize_value(map, &Strict(value, MapForm::Object))
            }
            StrictMap::Pairs(list, next) => {
                let key = next.take().ok_or(S::Error::custom("a value has no key"))?;
                let pair = (key, Strict(value, MapForm::Pairs));
                ser::SerializeSeq::serialize_element(list, &pair)
            }
        }
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        match self {
            StrictMap::Object(map) => ser::SerializeMap::end(map),
            StrictMap::Pairs(list, _) => ser::SerializeSeq::end(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::{MapForm, Strict};

    fn json(value: &impl Serialize, maps: MapForm) -> Result<String, String> {
        serde_json::to_string(&Strict(value, maps)).map_err(|error| error.to_string())
    }

    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle(f32),
        Line(u8, i128),
        Rectangle {
            width: Option<f64>,
            names: BTreeMap<u8, ()>,
        },
    }

    #[test]
    fn all_else_is_as_serde_json_has_it() {
        let width = Some(0.5);
        let names = BTreeMap::from([(7, ())]);
        let shapes = (
            [Shape::Point, Shape::Circle(1.5), Shape::Line(1, i128::MIN)],
            Shape::Rectangle { width, names },
            ("a", 'b', true, None::<u8>, 1_u64, -1_i8, 2.0),
        );
        let plain = serde_json::to_string(&shapes).unwrap();
        assert_eq!(json(&shapes, MapForm::Object), Ok(plain.clone()));
        let pairs = plain.replace(r#"{"7":null}"#, "[[7,null]]");
        assert_eq!(json(&shapes, MapForm::Pairs), Ok(pairs));
    }

    #[test]
    fn a_map_as_pairs_keeps_its_keys_and_those_within() {
        let inner = BTreeMap::from([("b", 0.5)]);
        let outer = BTreeMap::from([((1, "a"), vec![inner])]);
        assert_eq!(
            json(&outer, MapForm::Pairs).unwrap(),
            r#"[[[1,"a"],[[["b",0.5]]]]]"#
        );
        let empty = BTreeMap::<u8, u8>::new();
        assert_eq!(json(&empty, MapForm::Pairs).unwrap(), "[]");
    }

    #[test]
    fn a_number_that_json_does_not_have_is_an_error_wherever_it_is() {
        let number = f64::NAN;
        for maps in [MapForm::Object, MapForm::Pairs] {
            for text in [
                json(&number, maps),
                json(&vec![Some(number)], maps),
                json(&(1, number), maps),
                json(&BTreeMap::from([("a", number)]), maps),
                json(&Shape::Circle(f32::NAN), maps),
            ] {
                assert_eq!(text, Err("JSON has no number NaN".to_owned()));
            }
            let infinite = json(&f64::INFINITY, maps);
            assert_eq!(infinite, Err("JSON has no number inf".to_owned()));
        }
    }
}
