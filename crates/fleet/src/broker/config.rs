//! What the server is told: where it listens, whom it knows, and who may say what to whom.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{
    ANSWERS, AUTHORITY, BrokerSettings, COORDINATOR, JOIN, JOIN_SUBJECT, SERVER_CERTIFICATES,
    SERVER_KEY, SERVER_LOG, SERVER_STORE, SYSTEM, UP, agent_id,
};
use crate::fabric::Space;
use crate::nats::{SUBJECTS, bucket_of, inbox_of};
use crate::protocol::AgentId;

/// How many connections there may be of those who want to join, and of coordinators, besides two of
/// each agent. Tokens are widely known: who has one, or has had, can do no more than ask, in few
/// words, in an account of its own.
const OTHERS_MAX: u64 = 64;

fn list(subjects: &[String]) -> String {
    let quoted: Vec<String> = subjects.iter().map(|subject| format!("{subject:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

fn user(name: &str, publish: &[String], subscribe: &[String]) -> String {
    format!(
        "      {{user: {name:?}, permissions: {{publish: {{allow: {}}}, subscribe: {{allow: {}}}}}}}\n",
        list(publish),
        list(subscribe)
    )
}

/// Returns what an agent may publish: its progress, and what it hands in. It may also read, chunk
/// by chunk, what all agents may read. The server sends a reply to any subject that the request
/// names, so an agent may make no request whose reply is its own bytes unchanged. Nor may it make
/// consumers, which would send stored messages to others again and again.
fn agent(id: &str) -> String {
    let own = bucket_of(&Space::Of(AgentId::new(id).expect("a number is an id")));
    let shared = bucket_of(&Space::Shared);
    let mut publish = vec![format!("{SUBJECTS}.tell.{id}"), format!("$O.{own}.>")];
    publish.push(format!("$JS.API.STREAM.PURGE.OBJ_{own}"));
    publish.push(format!("$JS.API.DIRECT.GET.OBJ_{shared}"));
    publish.push(format!("$JS.API.DIRECT.GET.OBJ_{shared}.>"));
    let subscribe = [
        format!("{SUBJECTS}.ask.all"),
        format!("{SUBJECTS}.ask.{id}"),
        format!("{}.>", inbox_of(id)),
    ];
    user(id, &publish, &subscribe)
}

/// The server writes whatever it refuses into its log, which others may make it do without end: it
/// begins another one after so many bytes,
const LOG_BYTES_MAX: u64 = 8 << 20;
/// and keeps so many.
const LOGS_MAX: u32 = 2;

/// Returns the configuration of the server, which keeps so many bytes; `revoked` are agents that it
/// no longer knows. What
/// waits for a client that does not read is bound: by its subscriptions, as each is sent a message,
/// by the length of subjects, by bytes and by time.
pub(super) fn text(settings: &BrokerSettings, room_bytes: u64, revoked: &BTreeSet<u32>) -> String {
    let (host, port) = &settings.listen;
    let port = if *port == 0 { -1 } else { i32::from(*port) };
    let directory = &settings.directory;
    let file = |name: &str| format!("{:?}", directory.join(name).display().to_string());
    let words = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut users = String::new();
    let inbox = |id: &str| format!("{}.>", inbox_of(id));
    let coordinator = [
        format!("{SUBJECTS}.ask.>"),
        format!("{SUBJECTS}.up.>"),
        "$JS.API.>".to_owned(),
        "$JS.FC.>".to_owned(),
        "$O.>".to_owned(),
    ];
    users += &user(COORDINATOR, &coordinator, &[format!("{SUBJECTS}.tell.*"), inbox(COORDINATOR)]);
    let up_says = words(&[&format!("{ANSWERS}.>"), &inbox(COORDINATOR), "$JS.API.STREAM.DELETE.*"]);
    let up_hears = [JOIN_SUBJECT.to_owned(), format!("{SUBJECTS}.up.>"), inbox(UP)];
    users += &user(UP, &up_says, &up_hears);
    let joins = user(JOIN, &words(&[JOIN_SUBJECT]), &[inbox(JOIN)]);
    for number in (1..=settings.agents_max).filter(|number| !revoked.contains(number)) {
        users += &agent(&agent_id(number));
    }
    let mut text = String::new();
    let written = write!(
        text,
        "host: {host:?}\n\
         port: {port}\n\
         log_file: {}\n\
         logfile_size_limit: {LOG_BYTES_MAX}\n\
         logfile_max_num: {LOGS_MAX}\n\
         max_payload: 1MB\n\
         max_control_line: 2048\n\
         max_connections: {}\n\
         max_subscriptions: 64\n\
         max_pending: 64MB\n\
         write_deadline: \"5s\"\n\
         ping_interval: \"1s\"\n\
         ping_max: 2\n\
         lame_duck_duration: \"30s\"\n\
         tls {{\n  cert_file: {}\n  key_file: {}\n  ca_file: {}\n  verify_and_map: true\n  \
         timeout: 5\n}}\n\
         jetstream {{\n  store_dir: {}\n  max_file_store: {room_bytes}\n}}\n\
         accounts {{\n  FLEET {{\n    jetstream: {{max_store: {room_bytes}}}\n    \
         exports: [{{service: {JOIN_SUBJECT:?}, accounts: [JOIN]}}]\n    \
         users: [\n{users}    ]\n  }}\n  \
         JOIN {{\n    imports: [{{service: {{account: FLEET, subject: {JOIN_SUBJECT:?}}}}}]\n    \
         limits {{max_payload: 8192, max_connections: {OTHERS_MAX}, max_subscriptions: 4}}\n    \
         users: [\n{joins}    ]\n  }}\n  \
         SYS {{\n    users: [{{user: {SYSTEM:?}}}]\n  }}\n}}\n\
         system_account: SYS\n",
        file(SERVER_LOG),
        2 * u64::from(settings.agents_max) + 2 * OTHERS_MAX,
        file(SERVER_CERTIFICATES),
        file(SERVER_KEY),
        file(AUTHORITY),
        file(SERVER_STORE),
    );
    written.expect("a text can be written");
    text
}

/// Returns the port that a server says in its log that it listens on.
pub(super) fn port_in(log: &str) -> Option<u16> {
    let line = log.lines().find(|line| line.contains("Listening for client connections on"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}
