//! Enums whose values have names in files and reports.

/// Declares an enum by the names of its values, and all that follows from them: `ALL`, `name`,
/// `from_name`.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident { $($(#[$each:meta])* $value:ident = $name:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $type {
            $($(#[$each])* $value,)+
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
    };
}
