//! What no message, record or report may hold, as arguments have it: one of this type is left out
//! of the command line that is kept with a run.

pub(crate) use plimsoll_model::Secret;

/// Secrets as the messages have them that hold them on their way.
pub(crate) mod secret_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Secret;

    pub(crate) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        secret.expose().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        String::deserialize(from).map(Secret::from)
    }

    /// Those that need not be there.
    pub(crate) mod optional {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            secret: &Option<Secret>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            secret.as_ref().map(Secret::expose).serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Secret>, D::Error> {
            Ok(Option::<String>::deserialize(from)?.map(Secret::from))
        }
    }
}
