//! Who asks a store: the keys of the flags, else those that are found, which are found again before
//! they expire as long as anybody signs with them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use plimsoll_conduct::{RunTime, child, input};
use plimsoll_credentials::{
    Chain, CredentialsError, Found, Keys as FoundKeys, KnownSecrets, Names, PATIENCE, Ran,
    Refreshed, Refresher, StaticKeys,
};
use plimsoll_driver_s3::{Credentials, Keys, S3Config, SharedKeys, WeakKeys};
use plimsoll_http::{Endpoint, Proxies};
use plimsoll_model::{Moment, Secret};
use plimsoll_report::format;
use plimsoll_workload::plan::{Plan, Stage};

use crate::args::CredentialArgs;
use crate::args::requests::SignatureArg;
use crate::left_out::CLOUD;
use crate::store::Way;
use crate::{environment, ui};

/// What the keys are called here.
const NAMES: Names = Names {
    keys: "the flags",
    access_key: "--access-key",
    secret_key: "--secret-key",
    session_token: "--session-token",
    web_token: "--sts-web-token",
};
/// More than any command of a profile prints of credentials.
const COMMAND_BYTES_MAX: usize = 64 << 10;
/// How often it is looked whether keys are due, and whether anybody still signs with them.
const LOOK: Duration = Duration::from_millis(200);

/// Whose credentials were found, and what became of them since.
pub(crate) struct Asking {
    pub(crate) found: Found,
    renewals: Option<Arc<Renewals>>,
}

impl Asking {
    /// Returns what is to be said in the record of keys that were found, and renewed.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let source = &self.found.source;
        let lasting = || vec![format!("the credentials are from {source} and name no end")];
        self.renewals.as_ref().map_or_else(lasting, |of| of.remarks(&self.found))
    }
}

/// What became of keys that expire.
#[derive(Default)]
struct Renewals(Mutex<Told>);

#[derive(Default)]
struct Told {
    renewed_count: u64,
    failures: Vec<String>,
}

impl Renewals {
    fn note(&self, note: impl FnOnce(&mut Told)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn remarks(&self, found: &Found) -> Vec<String> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = format::plural(told.renewed_count, "time");
        let renewed = format!("the credentials from {} were renewed {times}", found.source);
        told.failures.iter().cloned().chain([renewed]).collect()
    }
}

/// Returns a configuration with whoever asks the store that it names, and who that is where it was
/// looked for.
pub(super) fn by_whom(
    config: S3Config,
    way: &Way,
    proxies: Option<Proxies>,
    time: &RunTime,
) -> Result<(S3Config, Option<Asking>)> {
    let args = &way.args;
    let given = given(&args.credentials);
    let requests = &args.requests;
    let web_token = requests.sts_web_token.clone();
    let must_find = match (requests.signature, &web_token) {
        (SignatureArg::StsWebToken, None) => {
            bail!("--signature STS_WEB_TOKEN needs --sts-web-token")
        }
        (SignatureArg::S3v4 | SignatureArg::S3v2, None) => false,
        _ => true,
    };
    if !must_find && given.is_any() {
        let credentials = credentials(&args.credentials)?;
        return Ok((S3Config { credentials, ..config }, None));
    }
    if given.is_any() && given.keys()?.is_none() {
        let asked = if web_token.is_some() { "--sts-web-token" } else { "--signature IAM" };
        bail!("{asked} asks with credentials, and --access-key '' as nobody: give one of them");
    }
    let chain = Chain {
        given,
        web_token,
        store: first_of(&config).clone(),
        store_tls: config.tls.is_some(),
        trust: way.asking_trust(),
        services_trust: way.services_trust(),
        proxies,
        known: KnownSecrets::default(),
        clock: time.clock.clone(),
        wall_epoch: time.wall_epoch,
        patience: requests.credentials_timeout.map_or(PATIENCE, |given| given.0),
        variable: environment::variable,
        read: input::read_text,
        run: command,
    };
    let found = match chain.resolve() {
        Err(CredentialsError::NotFound { places, .. }) if !must_find => {
            return Ok((S3Config { keys_sought: Some(places), ..config }, None));
        }
        Err(CredentialsError::LeftOut(place)) => return Err(CLOUD.refusal().context(place)),
        found => found?,
    };
    let keys = SharedKeys::new(keys_of(found.keys.clone(), Some(found.source.to_string())));
    let renewals = Refresher::of(chain, &found).map(|refresher| renewed(refresher, &keys));
    let region_otherwise = found.region.clone();
    let config = S3Config { credentials: Credentials::Keys(keys), region_otherwise, ..config };
    Ok((config, Some(Asking { found, renewals })))
}

/// Runs the command of a profile.
fn command(line: &str, time_max: Duration) -> io::Result<Option<Ran>> {
    let clock = RunTime::machine().clock;
    let ended = child::run_to_end(line, COMMAND_BYTES_MAX, &*clock, time_max)?;
    // Moved, so that no copy of it stays behind.
    let text = |of: child::Output| {
        String::from_utf8(of.kept)
            .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned())
    };
    Ok(ended
        .map(|child::Ended { status, output }| Ran { status, output: Secret::from(text(output)) }))
}

fn first_of(config: &S3Config) -> &Endpoint {
    config.endpoints.first().expect("a store that is named has an endpoint")
}

/// Has keys be renewed as long as anybody signs with them, by a thread that is on no operation's
/// path.
fn renewed(mut refresher: Refresher, keys: &SharedKeys) -> Arc<Renewals> {
    let renewals = Arc::new(Renewals::default());
    let (told, keys) = (Arc::clone(&renewals), keys.downgrade());
    let thread = thread::Builder::new().name("credentials".to_owned());
    let begun = thread.spawn(move || {
        while keys.upgrade().is_some() {
            match refresher.due_in() {
                None => return,
                Some(left) if left.is_zero() => renew(&mut refresher, &keys, &told),
                Some(left) => thread::park_timeout(left.min(LOOK)),
            }
        }
    });
    if let Err(error) = begun {
        fail(&renewals, format!("the credentials cannot be renewed: no thread: {error}"));
    }
    renewals
}

fn renew(refresher: &mut Refresher, keys: &WeakKeys, told: &Renewals) {
    let source = refresher.source().clone();
    match refresher.ask() {
        Refreshed::Same => {}
        Refreshed::New(new) => {
            let Some(keys) = keys.upgrade() else { return };
            match keys.replace(keys_of(new, Some(source.to_string()))) {
                Ok(()) => told.note(|told| told.renewed_count += 1),
                Err(error) => {
                    fail(
                        told,
                        format!("the new credentials from {source} cannot be used: {error}"),
                    );
                }
            }
        }
        Refreshed::Failed { is_first: false, .. } => {}
        Refreshed::Failed { error, hold_until, .. } => {
            let error = anyhow::Error::from(error);
            fail(
                told,
                format!(
                    "the credentials from {source} could not be renewed ({error:#}); those in use \
                     hold until {hold_until}, and the source is asked again and again"
                ),
            );
        }
    }
}

/// Says that keys were not renewed, here and in the record.
fn fail(told: &Renewals, line: String) {
    ui::write_stderr(&format!("warning: {line}"));
    told.note(|told| told.failures.push(line));
}

/// Refuses a run by agents that takes longer than the keys hold that they are sent, as these are
/// sent once; warns where that does not show before.
pub(crate) fn keys_outlast(plan: &Plan, found: &[Asking], time: &RunTime) -> Result<()> {
    let times = || plan.stages.iter().map(Stage::duration_max);
    let now = time.wall_epoch.after(time.clock.now().since(Moment::EPOCH));
    let end = now.after(times().flatten().sum());
    for Asking { found, .. } in found {
        let source = &found.source;
        if let Some(expires) = found.expire_before(end) {
            bail!(
                "the credentials from {source} expire at {expires}, before the run ends, and \
                 agents are sent them once; with --agent-credentials each agent finds its own, \
                 and again before they expire"
            );
        }
        if let Some(expires) = found.keys.expires.filter(|_| times().any(|time| time.is_none())) {
            ui::write_stderr(&format!(
                "warning: the credentials from {source} expire at {expires}, and agents are sent \
                 them once; operations after that will be refused (--agent-credentials has each \
                 agent find its own)"
            ));
        }
    }
    Ok(())
}

/// Returns who asks, as flags alone say it.
pub(crate) fn credentials(args: &CredentialArgs) -> Result<Credentials> {
    let keys = given(args).keys()?;
    Ok(keys.map_or(Credentials::Anonymous, |keys| {
        Credentials::Keys(SharedKeys::new(keys_of(keys, None)))
    }))
}

fn given(args: &CredentialArgs) -> StaticKeys {
    let CredentialArgs { access_key, secret_key, session_token } = args.clone();
    StaticKeys { access_key, secret_key, session_token, names: NAMES }
}

fn keys_of(keys: FoundKeys, source: Option<String>) -> Keys {
    let FoundKeys { access_key, secret_key, session_token, .. } = keys;
    Keys { access_key, secret_key, session_token, source }
}
