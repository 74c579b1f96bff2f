//! The profile files of Amazon's tools: sections of `name = value`.

use crate::{CredentialsError, Keys, Result};

const ACCESS_KEY: &str = "aws_access_key_id";
const SECRET_KEY: &str = "aws_secret_access_key";
/// Settings by which a profile gets its keys from elsewhere, in ways that are not known here.
const OTHER_WAYS: [&str; 5] =
    ["credential_process", "role_arn", "sso_session", "sso_start_url", "credential_source"];

/// One profile's settings, the later of two the stronger.
#[derive(Default)]
struct Profile<'a> {
    found: bool,
    access_key: Option<&'a str>,
    secret_key: Option<&'a str>,
    session_token: Option<&'a str>,
    other_way: Option<&'static str>,
}

/// Returns the keys of a profile, those of the credentials file before those of the config file;
/// `None` if it is in neither of them or holds none.
pub(crate) fn keys(credentials: &str, config: &str, name: &str) -> Result<Option<Keys>> {
    let first = Profile::read(credentials, |section| section == name);
    let second = Profile::read(config, |section| match section.strip_prefix("profile ") {
        Some(named) => named.trim() == name,
        None => section == "default" && name == "default",
    });
    let half =
        |has, lacks| Err(CredentialsError::HalfProfile { profile: name.to_owned(), has, lacks });
    for profile in [&first, &second] {
        let token = profile.session_token.map(str::to_owned);
        match (profile.access_key, profile.secret_key) {
            (Some(access), Some(secret)) => {
                return Ok(Some(Keys::lasting(access.to_owned(), secret.to_owned(), token)));
            }
            (None, None) => {}
            (Some(_), None) => return half(ACCESS_KEY, SECRET_KEY),
            (None, Some(_)) => return half(SECRET_KEY, ACCESS_KEY),
        }
    }
    if let Some(way) = first.other_way.or(second.other_way) {
        return Err(CredentialsError::OtherWay { profile: name.to_owned(), way });
    }
    if (first.found || second.found) && name != "default" {
        return Err(CredentialsError::EmptyProfile(name.to_owned()));
    }
    Ok(None)
}

impl<'a> Profile<'a> {
    fn read(text: &'a str, is_meant: impl Fn(&str) -> bool) -> Self {
        let mut profile = Self::default();
        let mut inside = false;
        for line in text.lines() {
            // An indented line belongs to the setting above it, none of which means keys.
            if line.starts_with([' ', '\t', '#', ';']) || line.trim().is_empty() {
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default();
                inside = is_meant(section.trim());
                profile.found |= inside;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| inside) {
                profile.set(name.trim(), value_of(value));
            }
        }
        profile
    }

    fn set(&mut self, name: &str, value: &'a str) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if value.is_empty() {
            return;
        }
        if is(ACCESS_KEY) {
            self.access_key = Some(value);
        } else if is(SECRET_KEY) {
            self.secret_key = Some(value);
        } else if is("aws_session_token") {
            self.session_token = Some(value);
        } else if let Some(way) = OTHER_WAYS.iter().find(|way| is(way)) {
            self.other_way = Some(way);
        }
    }
}

/// Returns a value without the comment behind it, which a blank separates.
fn value_of(text: &str) -> &str {
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| text.find(mark)).min();
    text[..comment.unwrap_or(text.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
# keys
[default]
aws_access_key_id=A1
aws_secret_access_key = s1/+=  # mine
[work]
  aws_access_key_id = not-this
AWS_ACCESS_KEY_ID = A2
aws_secret_access_key = s2#still
aws_session_token = t2
[half]
aws_access_key_id = A3
";
    const CONFIG: &str = "\
[profile work]
aws_access_key_id = C2
aws_secret_access_key = c2
[profile other ]
region = eu-west-1
aws_access_key_id = C4
s3 =
  max_concurrent_requests = 20
aws_secret_access_key = c4
[profile tool]
credential_process = /opt/x --secret hush
[profile bare]
region = x
[other2]
aws_access_key_id = C5
aws_secret_access_key = c5
";

    fn found(name: &str) -> Option<(String, String, Option<String>)> {
        let keys = keys(CREDENTIALS, CONFIG, name).unwrap()?;
        Some((keys.access_key, keys.secret_key, keys.session_token))
    }

    #[test]
    fn each_profile_has_its_own_keys() {
        let of = |access: &str, secret: &str, token: Option<&str>| {
            Some((access.to_owned(), secret.to_owned(), token.map(str::to_owned)))
        };
        assert_eq!(found("default"), of("A1", "s1/+=", None));
        assert_eq!(found("work"), of("A2", "s2#still", Some("t2")), "not those of the config");
        assert_eq!(found("other"), of("C4", "c4", None));
        assert_eq!(found("other2"), None, "the config file says `profile` before a name");
        assert_eq!(found("nobody"), None);
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_refused_with_the_reason() {
        for (name, reason) in [
            ("half", "profile `half` has an aws_access_key_id without aws_secret_access_key"),
            ("bare", "profile `bare` holds no keys"),
        ] {
            let error = keys(CREDENTIALS, CONFIG, name).err().unwrap();
            assert_eq!(error.to_string(), reason);
        }
        let error = keys(CREDENTIALS, CONFIG, "tool").err().unwrap().to_string();
        assert!(error.contains("`credential_process`") && !error.contains("hush"), "{error}");
    }
}
