//! Who signs in and where, put together of what a workload says and of what its caller was told:
//! the environment as Swift's own client reads it, and secrets that are handed over.

use std::collections::BTreeMap;

use plimsoll_http::TlsOptions;
use plimsoll_model::Secret;

use crate::config::{Address, Named, Service, SignIn, Who};

/// The domain of Keystone's that everybody is in where there are no others.
const DOMAIN: &str = "Default";

/// The variables of the environment that are read, as Swift's own client names them.
pub const VARIABLES: [&str; 26] = [
    "ST_AUTH_VERSION",
    "ST_AUTH",
    "ST_USER",
    "ST_KEY",
    "OS_AUTH_VERSION",
    "OS_IDENTITY_API_VERSION",
    "OS_AUTH_URL",
    "OS_USERNAME",
    "OS_USER_ID",
    "OS_PASSWORD",
    "OS_AUTH_TOKEN",
    "OS_STORAGE_URL",
    "OS_PROJECT_NAME",
    "OS_TENANT_NAME",
    "OS_PROJECT_ID",
    "OS_TENANT_ID",
    "OS_USER_DOMAIN_NAME",
    "OS_USER_DOMAIN_ID",
    "OS_PROJECT_DOMAIN_NAME",
    "OS_PROJECT_DOMAIN_ID",
    "OS_DEFAULT_DOMAIN",
    "OS_REGION_NAME",
    "OS_ENDPOINT_TYPE",
    "OS_INTERFACE",
    "OS_SERVICE_TYPE",
    "OS_CACERT",
];

/// Those of them that hold secrets.
pub const SECRET_VARIABLES: [&str; 3] = ["ST_KEY", "OS_PASSWORD", "OS_AUTH_TOKEN"];

/// What the caller was told beside the workload. Nothing shows what it holds.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who signs in, whatever else is said.
    pub user: Option<Secret>,
    /// The password of whoever signs in, whatever the environment says.
    pub password: Option<Secret>,
    /// A token that was given before.
    pub token: Option<Secret>,
    /// Who is trusted; a workload may add to that.
    pub tls: TlsOptions,
    variables: BTreeMap<&'static str, Secret>,
}

/// What a workload says of who signs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// Where.
    pub auth: Option<&'a str>,
    /// How.
    pub version: Option<Version>,
    /// Who.
    pub user: Option<&'a str>,
    /// The name of the project.
    pub project: Option<&'a str>,
    /// The id of the project.
    pub project_id: Option<&'a str>,
    /// The domain of the user.
    pub user_domain: Option<&'a str>,
    /// The domain of the project.
    pub project_domain: Option<&'a str>,
    /// The region of the store.
    pub region: Option<&'a str>,
    /// The name or the type of the store.
    pub service: Option<&'a str>,
    /// Where the account is.
    pub storage_url: Option<&'a str>,
}

/// How one signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// By headers.
    V1,
    /// By Keystone, version 2.
    V2,
    /// By Keystone, version 3.
    V3,
    /// Not at all.
    None,
}

/// Why nobody can sign in, and the field of the workload that would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AccessError {
    /// The field.
    pub field: &'static str,
    /// What is wrong, without any secret.
    pub why: String,
}

fn refuse<T>(field: &'static str, why: impl Into<String>) -> Result<T, AccessError> {
    Err(AccessError { field, why: why.into() })
}

impl Said<'_> {
    /// Checks what needs nobody's secrets.
    pub fn check(&self) -> Result<(), AccessError> {
        for (field, text) in [("auth", self.auth), ("storage_url", self.storage_url)] {
            text.map(|text| address(field, text)).transpose()?;
        }
        match (self.version, self.storage_url) {
            (Some(Version::None), None) => refuse(
                "storage_url",
                "without a sign-in (`auth_version: none`) it has to say where the account is",
            ),
            _ => Ok(()),
        }
    }
}

fn address(field: &'static str, text: &str) -> Result<Address, AccessError> {
    Address::parse(text).or_else(|why| refuse(field, why))
}

impl Access {
    /// Returns what the environment says.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let given = |name: &'static str| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some((name, Secret::from(value)))
        };
        let variables = VARIABLES.into_iter().filter_map(given).collect();
        Self { variables, ..Self::default() }
    }

    /// Returns the variables that are set, to be handed on; they hold secrets.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.variables.iter().map(|(name, value)| (*name, value.expose()))
    }

    /// Returns the first of these variables that is set.
    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.variables.get::<str>(name)).map(Secret::expose)
    }

    /// Returns who signs in and how, and where the account is if that is said.
    pub fn sign_in(&self, said: &Said<'_>) -> Result<(SignIn, Option<Address>), AccessError> {
        // Who names where one signs in has no use for an account of somewhere else.
        let of_environment = || self.first(&["OS_STORAGE_URL"]).filter(|_| said.auth.is_none());
        let storage = said.storage_url.or_else(of_environment);
        let storage = storage.map(|url| address("storage_url", url)).transpose()?;
        let version = self.version(said, storage.is_some())?;
        let sign_in = match version {
            Version::None if storage.is_none() => {
                return refuse(
                    "storage_url",
                    "no user signs in, so it has to say where the account is (or OS_STORAGE_URL)",
                );
            }
            Version::None => SignIn::Known { token: self.token() },
            Version::V1 => self.v1(said)?,
            Version::V2 | Version::V3 => self.keystone(said, version)?,
        };
        Ok((sign_in, storage))
    }

    fn token(&self) -> Option<Secret> {
        let of_environment = || self.variables.get("OS_AUTH_TOKEN").cloned();
        self.token.clone().or_else(of_environment)
    }

    fn version(&self, said: &Said<'_>, knows_storage: bool) -> Result<Version, AccessError> {
        if let Some(version) = said.version {
            return Ok(version);
        }
        let auth = said.auth.or_else(|| self.first(&["ST_AUTH", "OS_AUTH_URL"]));
        let path = auth.unwrap_or_default();
        for (part, version) in [
            ("/v3", Version::V3),
            ("/v2.0", Version::V2),
            ("/auth/v1", Version::V1),
            ("/v1.0", Version::V1),
        ] {
            if path.contains(part) {
                return Ok(version);
            }
        }
        let names = ["ST_AUTH_VERSION", "OS_AUTH_VERSION", "OS_IDENTITY_API_VERSION"];
        if let Some(number) = self.first(&names) {
            return match number.trim_start_matches('v').split('.').next() {
                Some("1") => Ok(Version::V1),
                Some("2") => Ok(Version::V2),
                Some("3") => Ok(Version::V3),
                _ => refuse(
                    "auth_version",
                    "ST_AUTH_VERSION, OS_AUTH_VERSION or OS_IDENTITY_API_VERSION is not 1, 2 or 3",
                ),
            };
        }
        let has_project = said.project.is_some() || said.project_id.is_some();
        let of_keystone = has_project || said.user_domain.is_some() || said.auth.is_none();
        Ok(match auth {
            None if knows_storage => Version::None,
            _ if of_keystone && self.first(&["ST_USER", "ST_AUTH"]).is_none() => Version::V3,
            _ => Version::V1,
        })
    }

    fn auth(&self, said: &Said<'_>, names: [&str; 2]) -> Result<Address, AccessError> {
        match said.auth.or_else(|| self.first(&names)) {
            Some(url) => address("auth", url),
            None => refuse("auth", format!("no address to sign in at ({})", names[0])),
        }
    }

    fn user(&self, said: &Said<'_>, names: [&str; 2]) -> Result<String, AccessError> {
        let given = self.user.as_ref().map(Secret::expose).or(said.user);
        match given.or_else(|| self.first(&names)) {
            Some(user) => Ok(user.to_owned()),
            None => refuse("user", format!("no user to sign in as ({})", names[0])),
        }
    }

    fn password(&self, names: [&str; 2]) -> Option<Secret> {
        let of_environment = || self.first(&names).map(|text| Secret::from(text.to_owned()));
        self.password.clone().or_else(of_environment)
    }

    fn v1(&self, said: &Said<'_>) -> Result<SignIn, AccessError> {
        let auth = self.auth(said, ["ST_AUTH", "OS_AUTH_URL"])?;
        let user = self.user(said, ["ST_USER", "OS_USERNAME"])?;
        match self.password(["ST_KEY", "OS_PASSWORD"]) {
            Some(key) => Ok(SignIn::V1 { auth, user, key }),
            None => refuse("user", "its key is not given: it comes from the environment (ST_KEY)"),
        }
    }

    fn keystone(&self, said: &Said<'_>, version: Version) -> Result<SignIn, AccessError> {
        let auth = self.auth(said, ["OS_AUTH_URL", "ST_AUTH"])?;
        let who = match (self.password(["OS_PASSWORD", "ST_KEY"]), self.token()) {
            (Some(password), _) => Who::User { user: self.keystone_user(said)?, password },
            (None, Some(token)) => Who::Holder(token),
            (None, None) => {
                return refuse(
                    "user",
                    "its password is not given: it comes from the environment (OS_PASSWORD, or \
                     OS_AUTH_TOKEN instead)",
                );
            }
        };
        let text = |said: Option<&str>, names: &[&str]| {
            said.or_else(|| self.first(names)).map(str::to_owned)
        };
        let name = text(said.project, &["OS_PROJECT_NAME", "OS_TENANT_NAME"]).map(Named::Name);
        let id = text(said.project_id, &["OS_PROJECT_ID", "OS_TENANT_ID"]).map(Named::Id);
        // What the workload says goes before what the environment says.
        let project = if said.project.is_some() { name.or(id) } else { id.or(name) };
        let interface = text(None, &["OS_ENDPOINT_TYPE", "OS_INTERFACE"]);
        let interface = interface.map(|of| of.strip_suffix("URL").unwrap_or(&of).to_owned());
        let service = Service {
            name: text(said.service, &["OS_SERVICE_TYPE"]),
            region: text(said.region, &["OS_REGION_NAME"]),
            interface,
        };
        if version == Version::V2 {
            return Ok(SignIn::V2 { auth, who, project, service });
        }
        let domain = |said: Option<&str>, name: &str, id: &str| {
            let of_environment = || self.first(&[id]).map(|id| Named::Id(id.to_owned()));
            let said = said.map(|name| Named::Name(name.to_owned()));
            said.or_else(of_environment).unwrap_or_else(|| {
                let name = self.first(&[name, "OS_DEFAULT_DOMAIN"]);
                Named::Name(name.unwrap_or(DOMAIN).to_owned())
            })
        };
        let user_domain = domain(said.user_domain, "OS_USER_DOMAIN_NAME", "OS_USER_DOMAIN_ID");
        let project_domain =
            domain(said.project_domain, "OS_PROJECT_DOMAIN_NAME", "OS_PROJECT_DOMAIN_ID");
        Ok(SignIn::V3 { auth, who, project, user_domain, project_domain, service })
    }

    fn keystone_user(&self, said: &Said<'_>) -> Result<Named, AccessError> {
        let is_named = self.user.is_some() || said.user.is_some();
        match self.first(&["OS_USER_ID"]).filter(|_| !is_named) {
            Some(id) => Ok(Named::Id(id.to_owned())),
            None => self.user(said, ["OS_USERNAME", "ST_USER"]).map(Named::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(variables: &[(&str, &str)]) -> Access {
        Access::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn name(text: &str) -> Named {
        Named::Name(text.to_owned())
    }

    #[test]
    fn version_1_is_read_as_swifts_client_does() {
        let given = [("ST_AUTH", "http://h/auth/v1.0"), ("ST_USER", "a:u"), ("ST_KEY", "hush")];
        let (sign_in, storage) = access(&given).sign_in(&Said::default()).unwrap();
        let auth = Address::parse("http://h/auth/v1.0").unwrap();
        let key = Secret::from("hush".to_owned());
        assert_eq!(sign_in, SignIn::V1 { auth, user: "a:u".to_owned(), key });
        assert!(storage.is_none() && !format!("{:?} {sign_in:?}", access(&given)).contains("hush"));
        let said = Said { auth: Some("http://other/auth"), user: Some("b:v"), ..Said::default() };
        let (sign_in, _) = access(&given).sign_in(&said).unwrap();
        let SignIn::V1 { auth, user, .. } = sign_in else { panic!("{sign_in:?}") };
        assert_eq!((auth.endpoint.host.as_str(), user.as_str()), ("other", "b:v"));
    }

    #[test]
    fn keystone_is_read_as_swifts_client_does() {
        let given = [
            ("OS_AUTH_URL", "https://k:5000/v3"),
            ("OS_USERNAME", "u"),
            ("OS_PASSWORD", "hush"),
            ("OS_PROJECT_NAME", "p"),
            ("OS_PROJECT_DOMAIN_ID", "d1"),
            ("OS_REGION_NAME", "r"),
            ("OS_ENDPOINT_TYPE", "internalURL"),
        ];
        let (sign_in, _) = access(&given).sign_in(&Said::default()).unwrap();
        let SignIn::V3 { who, project, user_domain, project_domain, service, .. } = &sign_in else {
            panic!("{sign_in:?}")
        };
        let password = Secret::from("hush".to_owned());
        assert_eq!(*who, Who::User { user: name("u"), password });
        assert_eq!((project.clone(), user_domain), (Some(name("p")), &name("Default")));
        assert_eq!(*project_domain, Named::Id("d1".to_owned()));
        let text = |text: &str| Some(text.to_owned());
        let expected = Service { name: None, region: text("r"), interface: text("internal") };
        assert_eq!(*service, expected);
        let said = Said { version: Some(Version::V2), project_id: Some("7"), ..Said::default() };
        let (sign_in, _) = access(&given).sign_in(&said).unwrap();
        let SignIn::V2 { project, .. } = sign_in else { panic!("{sign_in:?}") };
        assert_eq!(project, Some(Named::Id("7".to_owned())));
    }

    #[test]
    fn what_is_handed_over_goes_before_the_environment() {
        let hidden = |text: &str| Some(Secret::from(text.to_owned()));
        let given = [("ST_USER", "a:u"), ("ST_KEY", "of the environment")];
        let told = Access { user: hidden("c:w"), password: hidden("told"), ..access(&given) };
        let said = Said { auth: Some("http://h/auth/v1.0"), ..Said::default() };
        let (sign_in, _) = told.sign_in(&said).unwrap();
        let SignIn::V1 { user, key, .. } = sign_in else { panic!("{sign_in:?}") };
        assert_eq!((user.as_str(), key.expose()), ("c:w", "told"));
    }

    #[test]
    fn a_token_and_an_account_need_no_sign_in() {
        let said = Said { storage_url: Some("http://h/v1/a"), ..Said::default() };
        let (sign_in, storage) = access(&[]).sign_in(&said).unwrap();
        assert_eq!(sign_in, SignIn::Known { token: None });
        assert_eq!(storage, Address::parse("http://h/v1/a").ok());
        let token = [("OS_AUTH_TOKEN", "t"), ("OS_STORAGE_URL", "http://h/v1/a")];
        let (sign_in, storage) = access(&token).sign_in(&Said::default()).unwrap();
        assert!(matches!(sign_in, SignIn::Known { token: Some(_) }) && storage.is_some());
        let said = Said { auth: Some("http://k/v3"), ..Said::default() };
        let (sign_in, storage) = access(&token).sign_in(&said).unwrap();
        assert!(matches!(sign_in, SignIn::V3 { who: Who::Holder(_), .. }), "{sign_in:?}");
        assert_eq!(storage, None, "an account of somewhere else is not that of this sign-in");
    }

    #[test]
    fn what_is_missing_is_named_with_its_field_and_its_variable() {
        let v1 = Said { auth: Some("http://h/auth/v1.0"), ..Said::default() };
        let with_user = Said { user: Some("a:u"), ..v1 };
        let v3 = Said { version: Some(Version::V3), user: Some("u"), ..Said::default() };
        for (said, field, word) in [
            (v1, "user", "ST_USER"),
            (with_user, "user", "ST_KEY"),
            (Said::default(), "auth", "OS_AUTH_URL"),
            (v3, "auth", "OS_AUTH_URL"),
            (Said { auth: Some("http://k"), ..v3 }, "user", "OS_PASSWORD"),
            (Said { auth: Some("k:5000"), ..v3 }, "auth", "http://"),
            (Said { version: Some(Version::None), ..Said::default() }, "storage_url", "account"),
        ] {
            let error = access(&[]).sign_in(&said).unwrap_err();
            assert!(error.field == field && error.why.contains(word), "{error:?}");
        }
        let error = access(&[("ST_AUTH_VERSION", "9")]).sign_in(&Said::default()).unwrap_err();
        assert_eq!(error.field, "auth_version");
        let none = Said { version: Some(Version::None), ..Said::default() };
        assert_eq!(none.check().unwrap_err().field, "storage_url");
        assert_eq!(v1.check(), Ok(()));
    }
}
