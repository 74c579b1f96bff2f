//! The command lines of SeaweedFS: all in one process, a cluster of several, and one with tokens.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, Recipe, RootKeys};
use crate::process;

/// How many volume servers the cluster has: one more than a file has copies.
const CLUSTER_SIZE: usize = 3;

/// What is common to all servers with a master: small volumes, and nothing told to others.
const OF_MASTER: [&str; 2] = ["telemetry=false", "volumeSizeLimitMB=64"];

/// A volume server takes no volume when less than this is free on its disk. Its own default is 1 %
/// of the disk, which on a large disk is more than the tests ever write.
const MIN_FREE_SPACE: &str = "minFreeSpace=1MiB";

/// Returns a process in a folder of its own. Its home is there too, so that a `security.toml` of
/// the person who runs the tests is not read.
fn weed(program: &Path, data: &Path, words: &[&str]) -> Result<Command> {
    fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
    let mut command = Command::new(program);
    command.current_dir(data).env("HOME", data).args(words);
    command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
    Ok(command)
}

/// Gives the server `what` a free port of HTTP and one of gRPC, by its flags; returns the first.
fn give_ports(recipe: &mut Recipe, command: &mut Command, what: &str) -> Result<(u16, u16)> {
    let (port, grpc) = (process::free_port()?, process::free_port()?);
    command.arg(format!("-{what}port={port}")).arg(format!("-{what}port.grpc={grpc}"));
    recipe.ports.extend([port, grpc]);
    Ok((port, grpc))
}

/// Begins the recipe of master and volume server in one process; returns the master's port too.
fn one_process(program: &Path, data: &Path) -> Result<(Recipe, Command, u16)> {
    let mut recipe = Recipe::default();
    let mut command = weed(program, data, &["server", "-volume.preStopSeconds=0"])?;
    command.args(OF_MASTER.map(|flag| format!("-master.{flag}")));
    command.arg("-volume.max=1000").arg(format!("-volume.{MIN_FREE_SPACE}"));
    command.arg(format!("-dir={}", data.display()));
    let (master, _) = give_ports(&mut recipe, &mut command, "master.")?;
    give_ports(&mut recipe, &mut command, "volume.")?;
    recipe.ready.push(Ready::Answers(master, "/dir/assign?collection=ready"));
    Ok((recipe, command, master))
}

/// Master and volume server, and nothing else.
pub(super) fn plain(program: &Path, data: &Path) -> Result<Recipe> {
    let (mut recipe, command, master) = one_process(program, data)?;
    let grpc = recipe.ports[1];
    recipe.variables = vec![("PLIMSOLL_TEST_WEED_MASTER", format!("127.0.0.1:{master}.{grpc}"))];
    recipe.commands.push(command);
    Ok(recipe)
}

/// Master, volume server, filer and S3 gateway in one process.
pub(super) fn whole(program: &Path, keys: &RootKeys, data: &Path) -> Result<Recipe> {
    let (mut recipe, mut command, master) = one_process(program, data)?;
    let config = data.join("s3.json");
    let identity = serde_json::json!({
        "name": "tests",
        "credentials": [{ "accessKey": keys.access, "secretKey": keys.secret }],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    });
    fs::write(&config, serde_json::json!({ "identities": [identity] }).to_string())?;
    command.args(["-filer", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"]);
    command.arg(format!("-s3.config={}", config.display()));
    // Without a key it encrypts nothing for anybody (SSE-S3).
    command.env("WEED_S3_SSE_KEY", &keys.secret);
    let (filer, _) = give_ports(&mut recipe, &mut command, "filer.")?;
    let (s3, _) = give_ports(&mut recipe, &mut command, "s3.")?;
    recipe.ready.extend([Ready::Answers(filer, "/"), Ready::Answers(s3, "/healthz")]);
    recipe.variables = vec![
        ("PLIMSOLL_TEST_WEED", format!("http://127.0.0.1:{master}")),
        ("PLIMSOLL_TEST_WEED_FILER", format!("http://127.0.0.1:{filer}")),
        ("PLIMSOLL_TEST_WEED_S3", format!("http://127.0.0.1:{s3}")),
    ];
    recipe.commands.push(command);
    Ok(recipe)
}

/// A master and volume servers in one rack, a process each.
pub(super) fn cluster(program: &Path, data: &Path) -> Result<Recipe> {
    let mut recipe = Recipe::default();
    let place = data.join("master");
    let mut command = weed(program, &place, &["master"])?;
    command.args(OF_MASTER.map(|flag| format!("-{flag}")));
    command.arg(format!("-mdir={}", place.display()));
    let (master, grpc) = give_ports(&mut recipe, &mut command, "")?;
    recipe.commands.push(command);
    for number in 1..=CLUSTER_SIZE {
        let place = data.join(format!("volume-{number}"));
        let mut command = weed(program, &place, &["volume", "-preStopSeconds=0", "-max=300"])?;
        command.arg(format!("-{MIN_FREE_SPACE}"));
        command.arg(format!("-mserver=127.0.0.1:{master}.{grpc}"));
        command.arg(format!("-dir={}", place.display()));
        give_ports(&mut recipe, &mut command, "")?;
        recipe.commands.push(command);
    }
    // There is an id of a file with three copies once all servers are known to the master.
    let probe = "/dir/assign?collection=ready&replication=002";
    recipe.ready.push(Ready::Answers(master, probe));
    recipe.variables = vec![("PLIMSOLL_TEST_WEED_CLUSTER", format!("http://127.0.0.1:{master}"))];
    Ok(recipe)
}

/// Master and volume server that want tokens, signed with two keys; those for writes live shortly.
pub(super) fn with_tokens(program: &Path, data: &Path) -> Result<Recipe> {
    let (mut recipe, command, master) = one_process(program, data)?;
    let (write, read) = (process::random_hex(16)?, process::random_hex(16)?);
    let security = format!(
        "[jwt.signing]\nkey = \"{write}\"\nexpires_after_seconds = 2\n\
         [jwt.signing.read]\nkey = \"{read}\"\nexpires_after_seconds = 10\n"
    );
    fs::write(data.join("security.toml"), security)?;
    recipe.variables = vec![
        ("PLIMSOLL_TEST_WEED_JWT", format!("http://127.0.0.1:{master}")),
        ("PLIMSOLL_TEST_WEED_WRITE_KEY", write),
        ("PLIMSOLL_TEST_WEED_READ_KEY", read),
    ];
    recipe.commands.push(command);
    Ok(recipe)
}
