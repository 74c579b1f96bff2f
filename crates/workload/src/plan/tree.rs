//! A file as a tree of plain values: what the typed workload is read from, so that every refusal
//! knows the path of its field, whatever the format.

mod de;

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub(super) use de::TreeError;

/// A value without meaning yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    /// In the order in which it was written.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Returns a value as it is written.
    pub(super) fn of(value: &impl Serialize) -> Self {
        serde_json::to_value(value).expect("it holds nothing that a file cannot").into()
    }

    /// Returns the field of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(fields) = self else { return None };
        fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the field of that name.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Map(fields) = self else { return None };
        fields.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => match number.as_i128() {
                Some(whole) => Self::Int(whole),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Map(fields.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

/// Returns a value that was read out of a tree, its refusal as one of another format.
pub(super) fn from_tree<T: for<'de> Deserialize<'de>, E: Error>(tree: Tree) -> Result<T, E> {
    T::deserialize(tree).map_err(|error: TreeError| E::custom(error))
}

/// Returns the value of a scalar, or else of a map or list.
pub(super) fn scalar_or<A, B, T, E>(
    tree: Tree,
    scalar: impl Fn(A) -> T,
    other: impl Fn(B) -> T,
) -> Result<T, E>
where
    A: for<'de> Deserialize<'de>,
    B: for<'de> Deserialize<'de>,
    E: Error,
{
    match tree {
        Tree::List(_) | Tree::Map(_) => from_tree(tree).map(other),
        _ => from_tree(tree).map(scalar),
    }
}

/// A key; a number stands for its text.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let key = match Tree::deserialize(from)? {
            Tree::Text(text) => text,
            Tree::Null => "null".to_owned(),
            Tree::Bool(value) => value.to_string(),
            Tree::Int(value) => value.to_string(),
            Tree::Float(value) => value.to_string(),
            Tree::List(_) | Tree::Map(_) => return Err(D::Error::custom("a key must be a text")),
        };
        Ok(Self(key))
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Int(value.into()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Int(value))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        Ok(i128::try_from(value).map_or(Tree::Float(value as f64), Tree::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        Tree::deserialize(from)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        Tree::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Tree::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields: Vec<(String, Tree)> = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            if fields.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("`{key}` appears twice")));
            }
            let value = map.next_value()?;
            fields.push((key, value));
        }
        Ok(Tree::Map(fields))
    }
}

/// Makes an enum of maps that are told apart by a field that only one of them has; what stands
/// behind the semicolon is for those that have none of the fields.
macro_rules! by_key {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident($type:ty) by $key:literal,)+
            $(; $(#[$other_meta:meta])* $other:ident($other_type:ty),)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(untagged)]
        pub enum $name {
            $($(#[$variant_meta])* $variant($type),)+
            $($(#[$other_meta])* $other($other_type),)?
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use $crate::plan::tree::{Tree, from_tree};
                let tree = Tree::deserialize(from)?;
                let fields = match &tree {
                    Tree::Map(fields) => fields,
                    _ => return Err(serde::de::Error::custom("must be a map of fields")),
                };
                let has = |key: &str| fields.iter().any(|(field, _)| field == key);
                $(if has($key) {
                    return from_tree(tree).map(Self::$variant);
                })+
                $(return from_tree::<$other_type, D::Error>(tree).map(Self::$other);)?
                #[allow(unreachable_code, reason = "some of these enums take every other map")]
                {
                    let keys = [$($key),+].join(", ");
                    let reason = format!("must have exactly one of the fields {keys}");
                    Err(serde::de::Error::custom(reason))
                }
            }
        }
    };
}
pub(super) use by_key;
