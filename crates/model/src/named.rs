//! Enums whose values have names in files and reports.

/// Declares an enum by the names of its values, and all that follows from them: `ALL`, `name`,
/// `from_name`, and the same as `Display` and `FromStr`.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident { $($(#[$each:meta])* $value:ident = $name:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $type {
            $($(#[$each])* #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// Every value, in the order of their numbers.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns the name used in files and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            /// Returns the value of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::from_name(name).ok_or_else(|| crate::UnknownName(name.to_owned()))
            }
        }
    };
}

/// A text that names no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(pub String);

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no name that is known here", self.0)
    }
}

impl std::error::Error for UnknownName {}
