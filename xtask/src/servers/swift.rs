//! OpenStack Swift: account, container and object server on one device, and two proxies in front of
//! them, one of which gives tokens that expire soon.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Ready, Recipe, RootKeys};
use crate::process;
use crate::tools::SwiftProgram;

const CACHE: &str = include_str!("swift_cache.py");
const RINGS: &str = include_str!("swift_rings.py");
const SERVER: &str = include_str!("swift_server.py");

/// How long the tokens of the second proxy are valid, in seconds.
const SHORT_LIFE: u32 = 2;
const LONG_LIFE: u32 = 86_400;

/// Two policies, the first of which containers have where nobody says otherwise.
const SWIFT_CONF: &str = "[swift-hash]\nswift_hash_path_prefix = plimsoll\n\
    swift_hash_path_suffix = plimsoll\n[storage-policy:0]\nname = plain\ndefault = yes\n\
    [storage-policy:1]\nname = gold\n";

/// The server of one kind; what it needs stands before what is its own.
fn server_conf(data: &Path, user: &str, kind: &str, port: u16) -> String {
    let (folder, devices) = (data.display(), data.join("devices"));
    let devices = devices.display();
    // Space is asked for by nobody, so that a full disk of the machine's does no harm to tests.
    format!(
        "[DEFAULT]\nswift_dir = {folder}\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\n\
         user = {user}\ndevices = {devices}\nmount_check = false\ndisable_fallocate = true\n\
         fallocate_reserve = 0\n\
         [pipeline:main]\npipeline = healthcheck {kind}-server\n\
         [filter:healthcheck]\nuse = egg:swift#healthcheck\n\
         [app:{kind}-server]\nuse = egg:swift#{kind}\n"
    )
}

fn proxy_conf(data: &Path, user: &str, key: &str, port: u16, token_life: u32) -> String {
    let folder = data.display();
    let plain = |name| format!("[filter:{name}]\nuse = egg:swift#{name}\n");
    let filters: String = ["catch_errors", "slo", "dlo"].map(plain).concat();
    format!(
        "[DEFAULT]\nswift_dir = {folder}\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\n\
         user = {user}\n\
         [pipeline:main]\npipeline = catch_errors cache tempauth slo dlo proxy-server\n\
         [app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\n\
         account_autocreate = true\n{filters}\
         [filter:cache]\npaste.filter_factory = swift_cache:filter_factory\n\
         [filter:tempauth]\nuse = egg:swift#tempauth\ntoken_life = {token_life}\n\
         user_test_tester = {key} .admin\n"
    )
}

/// Servers and proxies, a process each.
pub(super) fn whole(program: &SwiftProgram, keys: &RootKeys, data: &Path) -> Result<Recipe> {
    let user = user_name()?;
    let kinds = ["account", "container", "object"];
    let mut ports = Vec::new();
    for _ in 0..kinds.len() + 2 {
        ports.push(process::free_port()?);
    }
    // A folder of its own for each try, as rings name ports.
    let data = &data.join(ports[0].to_string());
    fs::create_dir_all(data.join("devices/d1"))
        .with_context(|| format!("cannot make {}", data.display()))?;
    fs::write(data.join("swift.conf"), SWIFT_CONF)?;
    fs::write(data.join("swift_cache.py"), CACHE)?;
    fs::write(data.join("swift_rings.py"), RINGS)?;
    fs::write(data.join("swift_server.py"), SERVER)?;
    let object = ports[2];
    let mut rings = program.python(data);
    rings.arg(data.join("swift_rings.py")).arg(data);
    rings.args(kinds.iter().zip(&ports).map(|(kind, port)| format!("{kind}={port}")));
    process::check(rings.arg(format!("object-1={object}")), "making the rings of Swift")?;

    let mut recipe = Recipe::default();
    let mut add = |kind: &str, port: u16, conf: String, path: &'static str| -> Result<()> {
        let file = data.join(format!("{kind}-{port}.conf"));
        fs::write(&file, conf)?;
        let mut command = program.python(data);
        command.arg("swift_server.py").args([data, &program.server(kind), &file]);
        recipe.commands.push(command);
        recipe.ready.push(Ready::Answers(port, path));
        Ok(())
    };
    for (kind, port) in kinds.into_iter().zip(ports.iter().copied()) {
        add(kind, port, server_conf(data, &user, kind, port), "/healthcheck")?;
    }
    let variables = ["PLIMSOLL_TEST_SWIFT", "PLIMSOLL_TEST_SWIFT_SHORT"];
    for (index, life) in [LONG_LIFE, SHORT_LIFE].into_iter().enumerate() {
        let port = ports[kinds.len() + index];
        add("proxy", port, proxy_conf(data, &user, &keys.secret, port, life), "/info")?;
        let url = format!("http://127.0.0.1:{port}");
        recipe.variables.push((variables[index], url));
    }
    Ok(recipe)
}

/// Returns who runs the tests: Swift wants a name, and takes no other user's.
fn user_name() -> Result<String> {
    let output = Command::new("id").arg("-un").output().context("cannot run id")?;
    let name = String::from_utf8(output.stdout).unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        bail!("this user has no name, and Swift asks for it");
    }
    Ok(name)
}
