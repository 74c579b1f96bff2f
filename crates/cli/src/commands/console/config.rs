//! What the console is told by flags, by COSBench's `controller.conf` and by its own
//! `console.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{BucketGlob, NamedHosts, input, machine};
use plimsoll_console::{BoundSecrets, CONFIG_FILE, Settings};
use plimsoll_http::expand_hosts;
use plimsoll_record::exposure::check_unchangeable;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::FILE_BYTES_MAX;
use crate::args::console::ConsoleArgs;

/// Where COSBench looks for its configuration.
const PLACES: [&str; 3] =
    ["controller.conf", "conf/controller.conf", "/etc/cosbench/controller.conf"];
/// Its file of users.
const USERS: &str = "cosbench-users.xml";

/// All that the console is told.
pub(super) struct Config {
    pub(super) settings: Settings,
    pub(super) users: Option<PathBuf>,
    pub(super) allow_dirs: Vec<PathBuf>,
    /// Hosts that credentials of flags and environment may be sent to.
    pub(super) credential_hosts: NamedHosts,
    /// What was read, and what of it means nothing here.
    pub(super) remarks: Vec<String>,
}

/// `console.toml`.
#[derive(Debug, Default)]
struct Own {
    touch: Vec<String>,
    allow_dirs: Vec<PathBuf>,
    credential_hosts: NamedHosts,
    secrets: Vec<BoundSecrets>,
}

/// What `controller.conf` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Controller {
    name: Option<String>,
    url: Option<String>,
    concurrency: Option<u32>,
    archive: Option<String>,
    drivers: Vec<(String, String)>,
    ignored: Vec<String>,
}

impl Config {
    pub(super) fn read(args: &ConsoleArgs) -> Result<Self> {
        let mut remarks = Vec::new();
        let path = match &args.config {
            Some(path) => Some(path.clone()),
            None => PLACES.iter().map(PathBuf::from).find(|path| path.is_file()),
        };
        let controller = match &path {
            Some(path) => {
                let text = match args.config {
                    Some(_) => input::read_text(path, FILE_BYTES_MAX)
                        .with_context(|| format!("--config: cannot read {}", path.display()))?,
                    None => input::read_unchangeable(path, FILE_BYTES_MAX).map_err(|error| {
                        let path = path.display();
                        anyhow!("cannot use {path}: {error}; to use it as it is: --config {path}")
                    })?,
                };
                let read = Controller::parse(&text);
                let read = read.with_context(|| format!("--config: {}", path.display()))?;
                remarks.push(format!("read {}", path.display()));
                remarks.extend(read.ignored.iter().map(|key| format!("{key} means nothing here")));
                read
            }
            None => Controller::default(),
        };
        let beside = path.as_deref().and_then(Path::parent).map(|parent| parent.join(USERS));
        let own = own(&args.directory.join(CONFIG_FILE))?;
        let host_name = || machine::describe().hostname.unwrap_or_else(|| "console".to_owned());
        let archive = args.archive.clone().or_else(|| controller.archive.map(PathBuf::from));
        let touch: Vec<String> = args.touch.iter().cloned().chain(own.touch).collect();
        for pattern in &touch {
            let parsed = pattern.parse::<BucketGlob>();
            parsed.map_err(|error| anyhow!("--touch {pattern}: {error}"))?;
        }
        if let Some(folder) = &args.triggers {
            let found = folder.metadata().map_err(anyhow::Error::from);
            let checked = found.and_then(|found| Ok(check_unchangeable(&found)?));
            checked.with_context(|| format!("--triggers {}", folder.display()))?;
        }
        let settings = Settings {
            name: args.name.clone().or(controller.name).unwrap_or_else(host_name),
            url: controller.url.filter(|url| url != "N/A"),
            directory: args.directory.clone(),
            archive: archive.unwrap_or_else(|| args.directory.join("archive")),
            concurrency: args.concurrency.or(controller.concurrency).unwrap_or(1),
            keep_secrets: args.keep_secrets,
            touch,
            secrets: own.secrets,
            drivers: controller.drivers,
            triggers: args.triggers.clone(),
        };
        let allow_dirs = args.allow_dir.iter().cloned().chain(own.allow_dirs).collect();
        let users = beside.filter(|path| path.is_file());
        let credential_hosts = own.credential_hosts;
        Ok(Self { settings, users, allow_dirs, credential_hosts, remarks })
    }
}

fn own(path: &Path) -> Result<Own> {
    if !path.exists() {
        return Ok(Own::default());
    }
    let text = input::read_text(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    // What the file holds may be a secret, so only the place of a fault is told.
    parse_own(&text).with_context(|| format!("{} cannot be read", path.display()))
}

fn parse_own(text: &str) -> Result<Own> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow!("line {line} is not TOML")
    })?;
    let mut own = Own::default();
    for (key, value) in table.into_inner() {
        let key = key.into_inner();
        match (&*key, value.into_inner()) {
            ("touch", DeValue::Array(list)) => own.touch = texts(&key, list)?,
            ("allow_dirs", DeValue::Array(list)) => {
                own.allow_dirs = texts(&key, list)?.into_iter().map(PathBuf::from).collect();
            }
            ("credential_hosts", DeValue::Array(list)) => own.credential_hosts = hosts(&key, list)?,
            ("secrets", DeValue::Table(table)) => own.secrets.push(secrets(table)?),
            ("secrets", DeValue::Array(list)) => {
                for table in list {
                    let DeValue::Table(table) = table.into_inner() else {
                        bail!("`secrets` holds what is no table");
                    };
                    own.secrets.push(secrets(table)?);
                }
            }
            _ => bail!(
                "`{key}` is not one of touch, allow_dirs, credential_hosts (lists) and secrets (a \
                 table, or several: [[secrets]])"
            ),
        }
    }
    Ok(own)
}

fn secrets(table: DeTable<'_>) -> Result<BoundSecrets> {
    let mut read = BoundSecrets::default();
    let mut is_bound = false;
    for (name, value) in table {
        let name = name.into_inner();
        match (&*name, value.into_inner()) {
            ("hosts", DeValue::Array(list)) => {
                read.hosts = hosts("secrets.hosts", list)?;
                is_bound = true;
            }
            ("hosts", _) => bail!("`secrets.hosts` is a list of texts"),
            (_, DeValue::String(value)) => {
                read.by_key.insert(name.into_owned(), value.into_owned().into());
            }
            _ => bail!("`secrets.{name}` is not a string"),
        }
    }
    match is_bound {
        true => Ok(read),
        false => bail!(
            "[secrets] does not say which hosts may be sent these secrets: add hosts = \
             [\"HOST:PORT\"], with all hosts of the workloads that they are for"
        ),
    }
}

fn hosts(key: &str, list: DeArray<'_>) -> Result<NamedHosts> {
    texts(key, list)?.iter().try_fold(NamedHosts::default(), |named, text| {
        let of_tls = text.strip_prefix("https://");
        let hosts = expand_hosts(of_tls.unwrap_or(text), 0).with_context(|| format!("`{key}`"))?;
        Ok(named.and(hosts, of_tls.is_some()))
    })
}

fn texts(key: &str, list: DeArray<'_>) -> Result<Vec<String>> {
    let text = |value: Spanned<DeValue<'_>>| match value.into_inner() {
        DeValue::String(text) => Ok(text.into_owned()),
        _ => bail!("`{key}` is a list of texts"),
    };
    list.into_iter().map(text).collect()
}

impl Controller {
    fn parse(text: &str) -> Result<Self> {
        let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.trim().clone_into(&mut section);
                continue;
            }
            let Some((key, value)) = line.split_once(['=', ':']) else {
                bail!("line {} is not `key = value`", index + 1);
            };
            let of = sections.entry(section.clone()).or_default();
            of.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        let mut read = Self::default();
        let mut own = sections.remove("controller").unwrap_or_default();
        read.name = own.remove("name");
        read.url = own.remove("url");
        read.archive = own.remove("archive_dir");
        let number = |key: &str, value: Option<String>| -> Result<Option<u32>> {
            let parsed = value.map(|value| value.parse::<u32>());
            parsed.transpose().with_context(|| format!("`{key}` is not a number"))
        };
        read.concurrency = number("concurrency", own.remove("concurrency"))?;
        let count = number("drivers", own.remove("drivers"))?.unwrap_or(0);
        for driver in 1..=count {
            let section = format!("driver{driver}");
            let mut of = sections.remove(&section).unwrap_or_default();
            let Some(name) = of.remove("name") else { bail!("[{section}] has no `name`") };
            read.drivers.push((name, of.remove("url").unwrap_or_else(|| "N/A".to_owned())));
            read.ignored.extend(of.keys().map(|key| format!("`{key}` of [{section}]")));
        }
        read.ignored.extend(own.keys().map(|key| format!("`{key}` of [controller]")));
        read.ignored.extend(sections.keys().map(|name| format!("section [{name}]")));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_conf_is_read_and_what_means_nothing_is_named() {
        let text = "[controller]\nname = lab\nconcurrency=2\ndrivers = 2\nlog_level = INFO\n\
                    log_file = log/system.log\narchive_dir = /srv/archive\n\n[driver1]\n\
                    name = driver1\nurl = http://10.0.0.1:18088/driver\n[driver2]\nname=d2\n\
                    url=http://10.0.0.2:18088/driver\n[driver3]\nname=d3\n";
        let read = Controller::parse(text).unwrap();
        assert_eq!((read.name.as_deref(), read.concurrency), (Some("lab"), Some(2)));
        assert_eq!(read.archive.as_deref(), Some("/srv/archive"));
        let url = |last: u8| format!("http://10.0.0.{last}:18088/driver");
        assert_eq!(read.drivers, [("driver1".to_owned(), url(1)), ("d2".to_owned(), url(2))]);
        assert_eq!(
            read.ignored,
            ["`log_file` of [controller]", "`log_level` of [controller]", "section [driver3]"]
        );
        for (text, part) in [
            ("[controller]\ndrivers = two", "`drivers` is not a number"),
            ("[controller]\ndrivers = 1", "[driver1] has no `name`"),
            ("nonsense", "line 1 is no"),
        ] {
            let error = Controller::parse(text).unwrap_err();
            assert!(format!("{error:#}").contains(part), "{error:#}");
        }
    }

    #[test]
    fn console_toml_is_checked_without_telling_its_secrets() {
        let text = "touch = ['ufs*']\ncredential_hosts = ['own', 'https://safe']\n\
                    [[secrets]]\nhosts = ['a:1', 'b']\nsecretkey = 'S3CR3T'\n\
                    [[secrets]]\nhosts = ['c']\npassword = 'P'\n";
        let own = parse_own(text).unwrap();
        assert_eq!((&*own.touch, own.secrets.len()), (&["ufs*".to_owned()][..], 2));
        let safe = expand_hosts("safe", 0).unwrap();
        assert_eq!(own.credential_hosts, NamedHosts::parse("own").unwrap().and(safe, true));
        assert_eq!(own.secrets[0].hosts, NamedHosts::parse("a:1,b").unwrap());
        assert_eq!(own.secrets[0].by_key["secretkey"].expose(), "S3CR3T");
        assert!(!own.secrets[0].by_key.contains_key("password"));
        for text in [
            "touch = 'a'",
            "other = 1",
            "[secrets]\nsecretkey = S3CR3T",
            "secrets = 1",
            "secrets = ['S3CR3T']",
            "[secrets]\nhosts = ['a b']\nsecretkey = 'S3CR3T'",
        ] {
            let error = format!("{:#}", parse_own(text).unwrap_err());
            assert!(!error.contains("S3CR3T"), "{error}");
        }
        let unbound = parse_own("[secrets]\nsecretkey = 'S3CR3T'\n").unwrap_err().to_string();
        assert!(unbound.contains("add hosts = [\"HOST:PORT\"]"), "{unbound}");
        assert!(!unbound.contains("S3CR3T"), "{unbound}");
    }
}
