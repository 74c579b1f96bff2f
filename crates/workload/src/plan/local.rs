//! Local files that a workload names.
//!
//! A field that names a local file is marked where it is declared (`serialize_with =
//! "names_a_file"`, or `"names_what_is_sent"`). [`WorkloadFile::local_files`] finds all of them by
//! walking the workload as it is serialised, so code that takes workloads from a network needs no
//! list of fields that could miss one.

use serde::de::value::Error;
use serde::ser::{self, Serialize, Serializer};

use super::path::FieldPath;
use super::spec::WorkloadFile;

/// Marks such a field. It is the name of a newtype, which no format writes.
const MARK: &str = "file of this machine";
/// Marks one that names a file whose content, or the names in it, go to a store.
const MARK_SENT: &str = "file of this machine that is sent";

/// A local file or directory that a workload names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFile {
    /// The field that names it.
    pub field: FieldPath,
    /// Where it lies.
    pub path: String,
    /// Whether its content, or the names in it, go to a store.
    pub is_sent: bool,
}

/// Serialises a field that names local files.
pub(super) fn names_a_file<T: Serialize, S: Serializer>(
    field: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(MARK, field)
}

/// Serialises a field that names local files whose content, or the names in them, go to a store.
pub(super) fn names_what_is_sent<T: Serialize, S: Serializer>(
    field: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(MARK_SENT, field)
}

impl WorkloadFile {
    /// Returns every local file and directory that the workload names.
    pub fn local_files(&self) -> Vec<LocalFile> {
        let mut found = Vec::new();
        let walk = Walk { at: FieldPath::root(), mark: None, found: &mut found };
        Self::serialize(self, walk).expect("nothing of it cannot be walked through");
        found
    }
}

type Walked = Result<(), Error>;

/// Walks a value and keeps the texts within a mark.
struct Walk<'f> {
    at: FieldPath,
    mark: Option<&'static str>,
    found: &'f mut Vec<LocalFile>,
}

/// Walks a list or a map.
struct Inside<'f> {
    walk: Walk<'f>,
    index: usize,
    key: String,
}

impl<'f> Walk<'f> {
    fn inside(self) -> Result<Inside<'f>, Error> {
        Ok(Inside { walk: self, index: 0, key: String::new() })
    }

    fn below(self, name: &str) -> Self {
        Self { at: self.at.named(name), ..self }
    }
}

impl Inside<'_> {
    fn go<T: Serialize + ?Sized>(&mut self, at: FieldPath, value: &T) -> Walked {
        let Walk { mark, found, .. } = &mut self.walk;
        value.serialize(Walk { at, mark: *mark, found })
    }

    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        let at = self.walk.at.index(self.index);
        self.index += 1;
        self.go(at, value)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Walked {
        self.go(self.walk.at.named(name), value)
    }
}

macro_rules! no_texts {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, _: $type) -> Walked {
            Ok(())
        })*
    };
}

impl<'f> Serializer for Walk<'f> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'f>;
    type SerializeTuple = Inside<'f>;
    type SerializeTupleStruct = Inside<'f>;
    type SerializeTupleVariant = Inside<'f>;
    type SerializeMap = Inside<'f>;
    type SerializeStruct = Inside<'f>;
    type SerializeStructVariant = Inside<'f>;

    no_texts! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_str(self, text: &str) -> Walked {
        if let Some(mark) = self.mark {
            let is_sent = mark == MARK_SENT;
            self.found.push(LocalFile { field: self.at, path: text.to_owned(), is_sent });
        }
        Ok(())
    }

    fn serialize_none(self) -> Walked {
        Ok(())
    }

    fn serialize_unit(self) -> Walked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Walked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Walked {
        let mark = self.mark.or(Some(name).filter(|name| [MARK, MARK_SENT].contains(name)));
        value.serialize(Self { mark, ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Walked {
        value.serialize(self.below(variant))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'f>, Error> {
        self.inside()
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'f>, Error> {
        self.inside()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'f>, Error> {
        self.inside()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'f>, Error> {
        self.below(variant).inside()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'f>, Error> {
        self.inside()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'f>, Error> {
        self.inside()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'f>, Error> {
        self.below(variant).inside()
    }
}

macro_rules! of_parts {
    ($($part:ident: $method:ident($($key:ident: $type:ty)?) by $step:ident,)*) => {
        $(impl ser::$part for Inside<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: $type,)? value: &T) -> Walked {
                self.$step($($key,)? value)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        })*
    };
}

of_parts! {
    SerializeSeq: serialize_element() by next,
    SerializeTuple: serialize_element() by next,
    SerializeTupleStruct: serialize_field() by next,
    SerializeTupleVariant: serialize_field() by next,
    SerializeStruct: serialize_field(key: &'static str) by field,
    SerializeStructVariant: serialize_field(key: &'static str) by field,
}

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Walked {
        let key = serde_json::to_value(key).map_err(ser::Error::custom)?;
        self.key = key.as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        let name = std::mem::take(&mut self.key);
        self.field(&name, value)
    }

    fn end(self) -> Walked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names a file wherever that can be.
    const ALL: &str = "schema: plimsoll.workload/2\nname: all\ntargets:\n  \
        store: {s3: {hosts: h, bucket: b}}\n  \
        weed: {seaweedfs: {filer: f, directory: /d, security: s.toml}}\n  \
        scripted: {oracle: {script: o.yaml}}\n  \
        one: {files: {directory: /one}}\n  \
        two: {files: {directory: [/a, /b]}}\nsets:\n  \
        listed: {on: store, existing: {list: keys.txt}}\n  \
        names: {on: store, named: {files: /photos}, shared: true}\n  \
        these: {on: store, named: {files: [{path: /p/1, bytes: 1}]}, shared: true}\n  \
        made: {on: store, count: 1, size: 1B, content: {files: [{path: /c/1, bytes: 1}]}, also_on: \
        {target: weed, path: x}}\n  \
        paths: {on: one, paths: [/dev/x, /dev/y], size: 1B}\n  \
        own: {on: one, names: [n], size: 1B}\n  traced: {on: store, trace: {file: t.log}}\n\
        stages: []\n";

    #[test]
    fn every_file_that_a_workload_names_is_found_with_its_field() {
        let file = WorkloadFile::from_yaml("all", ALL).unwrap();
        let found = file.local_files();
        let found: Vec<String> = found
            .iter()
            .map(|of| format!("{} {}{}", of.field, of.path, if of.is_sent { ", sent" } else { "" }))
            .collect();
        assert_eq!(
            found,
            [
                "targets.weed.seaweedfs.security s.toml",
                "targets.scripted.oracle.script o.yaml",
                "targets.one.files.directory /one",
                "targets.two.files.directory[0] /a",
                "targets.two.files.directory[1] /b",
                "sets.listed.existing.list keys.txt, sent",
                "sets.names.named.files /photos, sent",
                "sets.these.named.files[0].path /p/1, sent",
                "sets.made.content.files[0].path /c/1, sent",
                "sets.paths.paths[0] /dev/x",
                "sets.paths.paths[1] /dev/y",
                "sets.traced.trace.file t.log, sent",
            ]
        );
    }

    /// Collects the fields of the schema that hold a text, or texts.
    fn texts_in(schema: &serde_json::Value, inside: &str, found: &mut BTreeSet<String>) {
        match schema {
            serde_json::Value::Object(all) => {
                for (name, of) in all {
                    let below = if name == "properties" || name == "$defs" { inside } else { name };
                    texts_in(of, below, found);
                }
                let text = "string".into();
                let is_text = |of: Option<&serde_json::Value>| {
                    of.is_some_and(|of| {
                        *of == text || of.as_array().is_some_and(|all| all.contains(&text))
                    })
                };
                if is_text(all.get("type")) {
                    found.insert(inside.to_owned());
                }
            }
            serde_json::Value::Array(all) => {
                all.iter().for_each(|of| texts_in(of, inside, found));
            }
            _ => {}
        }
    }

    /// A new field whose name is that of a file is either marked and in [`ALL`], or said here to be
    /// none.
    #[test]
    fn no_field_of_the_schema_names_a_file_unseen() {
        // Keys of objects, and a profile of credentials, which no target takes yet.
        const NO_FILES: [&str; 3] = ["key", "keys", "profile"];
        let mut texts = BTreeSet::new();
        let schema = serde_json::to_value(WorkloadFile::json_schema()).unwrap();
        texts_in(&schema, "", &mut texts);
        let words = ["file", "path", "dir", "list", "script", "security", "key", "cert", "trace"];
        let like_a_file = texts.iter().filter(|name| words.iter().any(|word| name.contains(word)));
        let file = WorkloadFile::from_yaml("all", ALL).unwrap();
        let known: BTreeSet<String> = file
            .local_files()
            .iter()
            .flat_map(|of| {
                of.field.form().replace("[]", "").split('.').map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let unseen: Vec<&String> = like_a_file
            .filter(|name| !known.contains(*name) && !NO_FILES.contains(&&***name))
            .collect();
        assert!(unseen.is_empty(), "{unseen:?}");
    }
}
