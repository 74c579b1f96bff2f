//! SeaweedFS's `security.toml`, as its own programs read it: the keys of tokens, and the
//! certificates of gRPC and HTTPS. What else stands in it is of servers, and passed over.

use std::path::PathBuf;

use plimsoll_http::{TlsIdentity, TlsOptions};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::SigningKeys;

/// What a client is told by `security.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// The keys of tokens that master and volume servers take.
    pub keys: SigningKeys,
    /// The keys of tokens that the filer takes.
    pub filer_keys: SigningKeys,
    /// TLS of gRPC, which is always mutual; `None` for plain.
    pub grpc: Option<TlsOptions>,
    /// TLS of HTTP; `None` for plain.
    pub https: Option<TlsOptions>,
    /// Whether masters speak plain HTTP all the same: volume servers have a certificate
    /// (`[https.volume]`), and masters have none (`[https.master]`).
    pub masters_are_plain: bool,
}

/// Why a `security.toml` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecurityError {
    /// It is not TOML.
    #[error("line {line}: {why}")]
    Syntax {
        /// Where, from 1 on.
        line: usize,
        /// What is wrong; holds nothing of the text.
        why: String,
    },
    /// A value is of the wrong type.
    #[error("line {line}: `{field}` has to be {wanted}, not {found}")]
    Type {
        /// Where, from 1 on.
        line: usize,
        /// The path of the field.
        field: String,
        /// What it has to be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A variable holds what is no truth value.
    #[error("the variable {name} has to be true or false")]
    Variable {
        /// Its name.
        name: String,
    },
    /// One of several that belong together is missing.
    #[error("`{missing}` is missing, as `{given}` is given (or the variable {variable})")]
    Missing {
        /// The path of the field.
        missing: &'static str,
        /// The path of the field that makes it needed.
        given: &'static str,
        /// The variable that could hold it.
        variable: String,
    },
}

impl Security {
    /// Reads the text of a file, which may be empty. `variable` returns variables of the
    /// environment; what they say counts more, as in SeaweedFS: `WEED_JWT_SIGNING_KEY` is `key` of
    /// `[jwt.signing]`. Paths are as written, relative to wherever the reader is.
    pub fn read(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SecurityError> {
        let parsed = DeTable::parse(text).map_err(|error| SecurityError::Syntax {
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            why: error.message().to_owned(),
        })?;
        let fields = Fields { text, root: parsed.get_ref(), variable };
        let keys = |section: &str| -> Result<SigningKeys, SecurityError> {
            let key = |path: &str| Ok(fields.text(path)?.map(String::into_bytes));
            let (write, read) = (format!("{section}.key"), format!("{section}.read.key"));
            Ok(SigningKeys { write: key(&write)?, read: key(&read)? })
        };
        Ok(Self {
            keys: keys("jwt.signing")?,
            filer_keys: keys("jwt.filer_signing")?,
            grpc: fields.grpc()?,
            https: fields.https()?,
            masters_are_plain: fields.text("https.volume.cert")?.is_some()
                && fields.text("https.master.cert")?.is_none(),
        })
    }
}

/// The fields of a file, and of the environment above it.
struct Fields<'a> {
    text: &'a str,
    root: &'a DeTable<'a>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Fields<'_> {
    /// Certificates of gRPC: all three, or none. Names are not compared, as SeaweedFS does not.
    fn grpc(&self) -> Result<Option<TlsOptions>, SecurityError> {
        const PATHS: [&str; 3] = ["grpc.ca", "grpc.client.cert", "grpc.client.key"];
        let [ca, certificate, key] = PATHS.map(|path| self.text(path));
        let found = [ca?, certificate?, key?];
        let Some(given) = found.iter().position(Option::is_some) else { return Ok(None) };
        let missing = found.iter().position(Option::is_none);
        if let Some(missing) = missing {
            return Err(self.missing(PATHS[missing], PATHS[given]));
        }
        let [ca_file, certificate, key] = found.map(|path| PathBuf::from(path.unwrap_or_default()));
        Ok(Some(TlsOptions {
            ca_file: Some(ca_file),
            any_name_of_ca: true,
            identity: Some(TlsIdentity { certificate: certificate.into(), key: key.into() }),
            ..TlsOptions::default()
        }))
    }

    /// HTTPS, where it is switched on.
    fn https(&self) -> Result<Option<TlsOptions>, SecurityError> {
        const PATHS: [&str; 2] = ["https.client.cert", "https.client.key"];
        let is_enabled = self.truth("https.client.enabled")?;
        let insecure = self.truth("https.client.insecure_skip_verify")?;
        let ca_file = self.text("https.client.ca")?.map(PathBuf::from);
        let identity = match PATHS.map(|path| self.text(path)) {
            [Ok(Some(certificate)), Ok(Some(key))] => {
                let [certificate, key] = [certificate, key].map(|path| PathBuf::from(path).into());
                Some(TlsIdentity { certificate, key })
            }
            [Ok(None), Ok(None)] => None,
            [Ok(Some(_)), Ok(None)] if is_enabled => return Err(self.missing(PATHS[1], PATHS[0])),
            [Ok(None), Ok(Some(_))] if is_enabled => return Err(self.missing(PATHS[0], PATHS[1])),
            [certificate, key] => {
                certificate.and(key)?;
                None
            }
        };
        let options = TlsOptions { insecure, ca_file, identity, ..TlsOptions::default() };
        Ok(is_enabled.then_some(options))
    }

    fn missing(&self, missing: &'static str, given: &'static str) -> SecurityError {
        SecurityError::Missing { missing, given, variable: variable_of(missing) }
    }

    /// Returns a text, `None` where there is none or an empty one.
    fn text(&self, path: &str) -> Result<Option<String>, SecurityError> {
        if let Some(value) = self.variable(path) {
            return Ok(Some(value));
        }
        let Some(value) = self.find(path)? else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
            None => Err(self.wrong_type(path, value, "a text in quotes")),
        }
    }

    /// Returns a truth value, false where there is none. In quotes it counts too.
    fn truth(&self, path: &str) -> Result<bool, SecurityError> {
        if let Some(value) = self.variable(path) {
            let name = variable_of(path);
            return truth_of(&value).ok_or(SecurityError::Variable { name });
        }
        let Some(value) = self.find(path)? else { return Ok(false) };
        let written = value.get_ref();
        let truth = written.as_bool().or_else(|| written.as_str().and_then(truth_of));
        truth.ok_or_else(|| self.wrong_type(path, value, "true or false"))
    }

    /// Returns the variable above a field; an empty one is as none.
    fn variable(&self, path: &str) -> Option<String> {
        (self.variable)(&variable_of(path)).filter(|value| !value.is_empty())
    }

    fn find(&self, path: &str) -> Result<Option<&Spanned<DeValue<'_>>>, SecurityError> {
        let mut table = self.root;
        let mut walked = 0;
        loop {
            let rest = &path[walked..];
            let name = rest.split('.').next().unwrap_or(rest);
            // SeaweedFS does not tell capital letters from small ones.
            let found = table.iter().find(|(key, _)| key.get_ref().eq_ignore_ascii_case(name));
            let Some((_, value)) = found else { return Ok(None) };
            walked += name.len();
            if walked == path.len() {
                return Ok(Some(value));
            }
            let inside = value.get_ref().as_table();
            table = inside.ok_or_else(|| self.wrong_type(&path[..walked], value, "a section"))?;
            walked += ".".len();
        }
    }

    fn wrong_type(
        &self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &'static str,
    ) -> SecurityError {
        SecurityError::Type {
            line: line_of(self.text, value.span().start),
            field: path.to_owned(),
            wanted,
            found: value.get_ref().type_str(),
        }
    }
}

/// Returns the variable that stands for a field.
fn variable_of(path: &str) -> String {
    format!("WEED_{}", path.replace('.', "_").to_ascii_uppercase())
}

fn truth_of(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "t" => Some(true),
        "false" | "0" | "f" | "" => Some(false),
        _ => None,
    }
}

/// Returns the line that a byte is in, from 1 on.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
