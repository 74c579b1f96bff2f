//! Values of `model`, which knows no serde, written by their names.

/// Makes a module that writes and reads a type by `name` and `from_name`.
macro_rules! by_name {
    ($module:ident, $type:ty, $what:literal, $value:ty, $write:expr, $read:expr) => {
        pub(super) mod $module {
            use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

            pub(in crate::v1) fn serialize<S: Serializer>(
                value: &$value,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                let write: fn(&$value) -> Option<&'static str> = $write;
                write(value).serialize(to)
            }

            pub(in crate::v1) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<$value, D::Error> {
                let name = Option::<String>::deserialize(from)?;
                let known = |name: &str| {
                    <$type>::from_name(name)
                        .ok_or_else(|| D::Error::custom(format!("`{name}` is no {}", $what)))
                };
                let value = name.as_deref().map(known).transpose()?;
                let read: fn(Option<$type>) -> $value = $read;
                Ok(read(value))
            }
        }
    };
}

by_name!(
    interface,
    plimsoll_model::Interface,
    "interface",
    Option<plimsoll_model::Interface>,
    |value| value.map(plimsoll_model::Interface::name),
    |value| value
);
by_name!(
    sync_mode,
    plimsoll_model::SyncMode,
    "way of syncing",
    plimsoll_model::SyncMode,
    |value| Some(value.name()),
    Option::unwrap_or_default
);
