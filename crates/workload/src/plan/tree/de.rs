//! Reads typed values out of a tree; a refusal knows the path of its field.

use std::fmt::{self, Display};

use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::Tree;
use crate::plan::path::{FieldPath, InvalidField, Segment};

/// Why a tree is no such value.
#[derive(Clone, Debug)]
pub(in crate::plan) struct TreeError(InvalidField);

impl TreeError {
    fn new(reason: String) -> Self {
        Self(InvalidField { path: FieldPath::root(), reason })
    }

    /// Returns the error as one of the field that the tree lies in.
    fn below(mut self, above: Segment) -> Self {
        self.0.path.push_front(above);
        self
    }

    fn below_field(self, name: &str) -> Self {
        self.below(Segment::Field(name.to_owned().into()))
    }

    /// Returns which field it is and what is wrong with it.
    pub(in crate::plan) fn into_invalid(self) -> InvalidField {
        self.0
    }
}

impl Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.path.segments().is_empty() {
            true => f.write_str(&self.0.reason),
            false => write!(f, "field `{}`: {}", self.0.path, self.0.reason),
        }
    }
}

impl std::error::Error for TreeError {}

fn listed(names: &[&str]) -> String {
    names.join(", ")
}

impl de::Error for TreeError {
    /// Takes apart what `Display` wrote, where a value was read out of a tree of its own: serde
    /// hands errors on as texts only.
    fn custom<T: Display>(message: T) -> Self {
        let message = message.to_string();
        let parts = message.strip_prefix("field `").and_then(|rest| rest.split_once("`: "));
        match parts.and_then(|(path, reason)| Some((path.parse().ok()?, reason))) {
            Some((path, reason)) => Self(InvalidField { path, reason: reason.to_owned() }),
            None => Self::new(message),
        }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match unexpected {
            Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
            Unexpected::Map => "a map".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Str(text) => format!("the text `{text}`"),
            Unexpected::Signed(number) => format!("the number {number}"),
            Unexpected::Unsigned(number) => format!("the number {number}"),
            Unexpected::Float(number) => format!("the number {number}"),
            Unexpected::Bool(value) => format!("`{value}`"),
            other => other.to_string(),
        };
        let expected = match expected.to_string().as_str() {
            "a string" => "a text".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "a list".to_owned(),
            other if other.starts_with("struct ") => "a map of fields".to_owned(),
            other => match other {
                "u32" | "u64" | "u8" | "usize" => "a whole number".to_owned(),
                "f64" => "a number".to_owned(),
                other => other.to_owned(),
            },
        };
        Self::new(format!("must be {expected}, not {found}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match unexpected {
            Unexpected::Signed(number) => Self::new(format!("{number} is out of range")),
            Unexpected::Unsigned(number) => Self::new(format!("{number} is out of range")),
            other => Self::invalid_type(other, expected),
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("`{variant}` is unknown; allowed are {}", listed(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        match expected.is_empty() {
            true => Self::new("unknown field; there are none here".to_owned()),
            false => Self::new(format!("unknown field; allowed are {}", listed(expected))),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing".to_owned()).below_field(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new("appears twice".to_owned()).below_field(field)
    }
}

impl<'de> IntoDeserializer<'de, TreeError> for Tree {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Tree {
    type Error = TreeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Int(value) => match (u64::try_from(value), i64::try_from(value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => Err(TreeError::new(format!("{value} is out of range"))),
            },
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(text) => visitor.visit_string(text),
            Self::List(entries) => visitor.visit_seq(Entries(entries.into_iter(), 0)),
            Self::Map(fields) => {
                visitor.visit_map(Fields { rest: fields.into_iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self {
            Self::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        let one = || {
            let names = listed(variants);
            TreeError::new(format!("must be exactly one of {names}"))
        };
        match self {
            Self::Text(name) => visitor.visit_enum(Variant { name, content: None }),
            Self::Null => visitor.visit_enum(Variant { name: "null".to_owned(), content: None }),
            Self::Map(fields) => {
                let [(name, content)] =
                    <[(String, Tree); 1]>::try_from(fields).map_err(|_| one())?;
                visitor.visit_enum(Variant { name, content: Some(content) })
            }
            _ => Err(one()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Entries(std::vec::IntoIter<Tree>, usize);

impl<'de> SeqAccess<'de> for Entries {
    type Error = TreeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TreeError> {
        let Some(entry) = self.0.next() else { return Ok(None) };
        let index = self.1;
        self.1 += 1;
        seed.deserialize(entry).map(Some).map_err(|error| error.below(Segment::Index(index)))
    }
}

struct Fields {
    rest: std::vec::IntoIter<(String, Tree)>,
    value: Option<(String, Tree)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = TreeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TreeError> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        let key = seed.deserialize(StringDeserializer::<TreeError>::new(name.clone()));
        let key = key.map_err(|error| error.below_field(&name))?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TreeError> {
        let (name, value) = self.value.take().expect("a value follows its key");
        seed.deserialize(value).map_err(|error| error.below_field(&name))
    }
}

struct Variant {
    name: String,
    content: Option<Tree>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = TreeError;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content), TreeError> {
        let name = StringDeserializer::<TreeError>::new(self.name.clone());
        let value = seed.deserialize(name);
        let value = value.map_err(|error| match &self.content {
            Some(_) => error.below_field(&self.name),
            None => error,
        })?;
        Ok((value, Content { name: self.name, content: self.content }))
    }
}

struct Content {
    name: String,
    content: Option<Tree>,
}

impl<'de> VariantAccess<'de> for Content {
    type Error = TreeError;

    fn unit_variant(self) -> Result<(), TreeError> {
        match self.content {
            None | Some(Tree::Null) => Ok(()),
            Some(_) => {
                let reason = format!("write it as `{}`, with nothing behind it", self.name);
                Err(TreeError::new(reason).below_field(&self.name))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TreeError> {
        let Some(content) = self.content else {
            return Err(TreeError::new(format!("`{0}` needs a value: `{0}: ...`", self.name)));
        };
        seed.deserialize(content).map_err(|error| error.below_field(&self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TreeError> {
        let content = self.content.unwrap_or(Tree::Null);
        content.deserialize_any(visitor).map_err(|error| error.below_field(&self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        let content = self.content.unwrap_or(Tree::Null);
        content.deserialize_any(visitor).map_err(|error| error.below_field(&self.name))
    }
}
