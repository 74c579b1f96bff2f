//! Who asks the targets of a workload, beside the workload: what its file never holds.

use std::collections::BTreeMap;

use plimsoll_model::Secret;

/// Who asks a target. What is not known is left to the environment and the command line; where any
/// of a kind's words is there, all of them are taken from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The public name of a key of S3; an empty one means that requests are not signed.
    pub access_key: Option<Secret>,
    /// Its secret.
    pub secret_key: Option<Secret>,
    /// The token that goes with a temporary key.
    pub session_token: Option<Secret>,
    /// Whose account of Swift it is.
    pub user: Option<Secret>,
    /// The user's password.
    pub password: Option<Secret>,
    /// A token that Swift has given before.
    pub token: Option<Secret>,
}

impl Secrets {
    /// Returns keys of S3.
    pub fn keys(access_key: Secret, secret_key: Secret) -> Self {
        Self { access_key: Some(access_key), secret_key: Some(secret_key), ..Self::default() }
    }

    /// Tells whether it says who asks a store that speaks S3.
    pub fn has_keys(&self) -> bool {
        self.access_key.is_some() || self.secret_key.is_some() || self.session_token.is_some()
    }

    /// Tells whether it says who signs in to a Swift.
    pub fn has_login(&self) -> bool {
        self.user.is_some() || self.password.is_some() || self.token.is_some()
    }
}

/// Who asks each target, by the name of the target in the plan: the only one without a name is
/// called by its kind, the one that a file does not describe by the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetSecrets(BTreeMap<String, Secrets>);

impl TargetSecrets {
    /// Returns those of a target.
    pub fn of(&self, target: &str) -> Option<&Secrets> {
        self.0.get(target)
    }

    /// Returns all of them, with the names of their targets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secrets)> {
        self.0.iter().map(|(target, secrets)| (&**target, secrets))
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Secrets)> for TargetSecrets {
    fn from_iter<I: IntoIterator<Item = (String, Secrets)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_their_own_and_none_is_shown() {
        let secret = |text: &str| Secret::from(text.to_owned());
        let keys = Secrets::keys(secret("AK-hush"), secret("SK-hush"));
        let login = Secrets { user: Some(secret("U-hush")), ..Secrets::default() };
        let all: TargetSecrets =
            [("s3".to_owned(), keys.clone()), ("b".to_owned(), login)].into_iter().collect();
        assert_eq!(all.of("s3"), Some(&keys));
        assert!(keys.has_keys() && !keys.has_login() && all.of("b").unwrap().has_login());
        assert!(!all.of("b").unwrap().has_keys() && all.of("c").is_none());
        assert_eq!(all.iter().map(|(target, _)| target).collect::<Vec<_>>(), ["b", "s3"]);
        assert!(!format!("{all:?}").contains("hush"), "{all:?}");
    }
}
