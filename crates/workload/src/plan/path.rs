//! Where in a workload file a field stands, as a value.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field, or the name of a set or a target.
    Field(Cow<'static, str>),
    /// A place in a list, 0-based.
    Index(usize),
}

/// The place of a field, such as `stages[1].jobs[0].work.objects[2].get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// Returns the path of the file as a whole.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Returns the path of a field below this one; of several, put together by dots, the last.
    pub fn field(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.0.extend(name.split('.').map(|part| Segment::Field(part.to_owned().into())));
        path
    }

    /// Returns the path of something that has a name of its own, such as a set.
    pub fn named(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Field(name.to_owned().into()));
        path
    }

    /// Returns the path of entry `index` of this list, 0-based.
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Index(index));
        path
    }

    /// Returns the steps from the file down to the field.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the path of what this one lies in, or `None` for the file as a whole.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Tells whether this path is `other` or leads through it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns its form, in which `[]` stands for every place in a list, such as
    /// `stages[].jobs[].workers`. For those who know fields by other names.
    pub fn form(&self) -> String {
        let mut text = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Index(_) => text.push_str("[]"),
                Segment::Field(name) => {
                    text.push_str(if text.is_empty() { "" } else { "." });
                    text.push_str(name);
                }
            }
        }
        text
    }

    /// Tells whether it is of that form.
    pub fn is_like(&self, form: &str) -> bool {
        self.form() == form
    }

    /// Returns the refusal of this field.
    pub fn refuse(&self, reason: impl Into<String>) -> InvalidField {
        InvalidField { path: self.clone(), reason: reason.into() }
    }

    /// Puts `above` before the path.
    pub(super) fn push_front(&mut self, above: Segment) {
        self.0.insert(0, above);
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Field(name) if number == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for FieldPath {
    type Err = String;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut segments = Vec::new();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
            if !name.is_empty() {
                segments.push(Segment::Field(name.to_owned().into()));
            }
            for index in indices.split('[').filter(|index| !index.is_empty()) {
                let number = index.strip_suffix(']').and_then(|digits| digits.parse().ok());
                let number =
                    number.ok_or_else(|| format!("`{text}` is not the path of a field"))?;
                segments.push(Segment::Index(number));
            }
        }
        Ok(Self(segments))
    }
}

/// A field that cannot be as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Where it stands.
    pub path: FieldPath,
    /// What is wrong with it, in a sentence that names no flag.
    pub reason: String,
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.segments().is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for InvalidField {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_and_read() {
        let path = FieldPath::root().field("stages").index(1).field("jobs").index(0);
        let path = path.field("work.objects").index(2).field("get");
        assert_eq!(path.to_string(), "stages[1].jobs[0].work.objects[2].get");
        assert_eq!(path.to_string().parse(), Ok(path.clone()));
        assert!(path.is_like("stages[].jobs[].work.objects[].get"));
        assert!(!path.is_like("stages[].jobs[]"));
        let above: FieldPath = "stages[1].jobs".parse().unwrap();
        assert!(path.is_within(&above) && !above.is_within(&path));
        assert_eq!(above.parent().unwrap().to_string(), "stages[1]");
        assert_eq!(FieldPath::root().parent(), None);
        assert_eq!(FieldPath::root().refuse("there is none").to_string(), "there is none");
    }
}
