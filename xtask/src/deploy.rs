//! Checks of what `deploy/` holds: scripts, manifests, units, and the flags in all of them; and of
//! the workflows of this repository.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, tools};

/// Flags in `deploy/` that are of other programs, or that clap gives to every command.
const OTHERS: [&str; 16] = [
    // sbatch and srun
    "cpu-bind",
    "exclusive",
    "input",
    "job-name",
    "kill-on-bad-exit",
    "label",
    "mpi",
    "nodes",
    "ntasks-per-node",
    "signal",
    "time",
    "wait",
    // nsc, cargo, apt-get, clap
    "mem-resolver",
    "release",
    "no-install-recommends",
    "help",
];

/// Where a unit looks for the program, which this machine need not have there.
const INSTALLED: &str = "/usr/local/bin/plimsoll";
/// A program that is everywhere.
const STAND_IN: &str = "/bin/sh";

/// A file of the repository, by its path from the root.
struct TextFile {
    path: String,
    text: String,
}

impl TextFile {
    fn is_script(&self) -> bool {
        self.text.starts_with("#!/usr/bin/env bash\n")
    }

    /// Tells a manifest from the values of a Helm chart.
    fn is_manifest(&self) -> bool {
        self.path.ends_with(".yaml") && self.text.lines().any(|line| line.starts_with("kind: "))
    }

    fn is_unit(&self) -> bool {
        self.path.ends_with(".service")
    }
}

/// Checks all of it.
pub(crate) fn run() -> Result<()> {
    let files = below("deploy")?;
    let findings = findings(&files, &flags_of(&sources()?));
    if !findings.is_empty() {
        bail!("{}", findings.join("\n"));
    }
    let of = |is_one: fn(&TextFile) -> bool| -> Vec<&TextFile> {
        files.iter().filter(|file| is_one(file)).collect()
    };
    check_scripts(&of(TextFile::is_script))?;
    check_workflows()?;
    check_manifests(&of(TextFile::is_manifest))?;
    check_prometheus()?;
    of(TextFile::is_unit).into_iter().try_for_each(check_unit)
}

/// Checks the rules for Prometheus, carries their unit tests out, and reads its configuration. What
/// the dashboard of Grafana asks is tried on a run, by `watching.rs` of cli's tests.
fn check_prometheus() -> Result<()> {
    let promtool = tools::install_prometheus()?.join("promtool");
    let folder = process::root().join("deploy/prometheus");
    for words in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "plimsoll.rules.yml"],
        ["test", "rules", "plimsoll.test.yml"],
    ] {
        let mut command = Command::new(&promtool);
        command.current_dir(&folder).args(words);
        process::check(&mut command, &format!("promtool {}", words.join(" ")))?;
    }
    let dashboard = process::root().join("deploy/grafana/plimsoll.json");
    let text = std::fs::read_to_string(&dashboard)?;
    let read: serde_json::Value = serde_json::from_str(&text).context("plimsoll.json")?;
    let ids = read["panels"].as_array().into_iter().flatten().map(|panel| panel["id"].as_u64());
    let ids: Vec<u64> = ids.collect::<Option<_>>().context("a panel of plimsoll.json has no id")?;
    if ids.is_empty() || ids.iter().collect::<BTreeSet<_>>().len() != ids.len() {
        bail!("the panels of plimsoll.json have no ids, or two the same");
    }
    Ok(())
}

/// Returns every text file below a folder of the repository.
fn below(folder: &str) -> Result<Vec<TextFile>> {
    let root = process::root().join(folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&root).with_context(|| format!("cannot list {folder}"))? {
        let name = entry?.file_name();
        let path = format!("{folder}/{}", name.to_string_lossy());
        if root.join(&name).is_dir() {
            files.extend(below(&path)?);
        } else {
            let text = std::fs::read_to_string(root.join(&name));
            files.push(TextFile { text: text.with_context(|| path.clone())?, path });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Returns the sources that declare flags.
fn sources() -> Result<Vec<TextFile>> {
    let mut sources = below("crates/cli/src")?;
    sources.retain(|file| file.path.starts_with("crates/cli/src/args"));
    Ok(sources)
}

/// Returns what is wrong with the texts as such.
fn findings(files: &[TextFile], flags: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    // Documents tell of many programs; what is run is held to our flags.
    for file in files.iter().filter(|file| !file.path.ends_with(".md")) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let is_known = |flag: &String| flags.contains(flag) || OTHERS.contains(&&**flag);
            for flag in flags_in(line).into_iter().filter(|flag| !is_known(flag)) {
                findings.push(format!("{}:{number}: plimsoll has no --{flag}", file.path));
            }
            if line == "kind: Secret" {
                let place = format!("{}:{number}", file.path);
                findings.push(format!("{place}: a secret in clear text; refer to one by its name"));
            }
        }
    }
    findings
}

/// Returns the flags that a line names, without their `--`.
fn flags_in(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let words = line.split(|c| !is_part(c));
    let flags = words.filter_map(|word| word.strip_prefix("--"));
    let flags = flags.filter(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase()));
    flags.map(|flag| flag.trim_end_matches('.').to_owned()).collect()
}

/// Returns the long flags that sources declare for clap.
fn flags_of(sources: &[TextFile]) -> BTreeSet<String> {
    let declared = |piece: &str| {
        let (attribute, rest) = piece.split_once(")]")?;
        let (_, long) = attribute.split_once("long")?;
        if let Some(name) = long.strip_prefix(" = \"") {
            return name.split('"').next().map(str::to_owned);
        }
        let field = rest.lines().find(|line| !line.trim().is_empty() && !line.contains("#["))?;
        let name = field.trim().trim_start_matches("pub(crate) ").split(':').next()?;
        Some(name.replace('_', "-"))
    };
    let pieces = sources.iter().flat_map(|file| file.text.split("#[arg(").skip(1));
    pieces.filter_map(declared).collect()
}

/// Has bash and shellcheck read scripts.
fn check_scripts(scripts: &[&TextFile]) -> Result<()> {
    for script in scripts {
        let mut bash = Command::new("bash");
        bash.current_dir(process::root()).arg("-n").arg(&script.path);
        process::check(&mut bash, &format!("bash -n {}", script.path))?;
    }
    let mut shellcheck = Command::new(tools::install_shellcheck()?);
    shellcheck.current_dir(process::root()).args(scripts.iter().map(|script| &script.path));
    process::check(&mut shellcheck, "shellcheck")?;
    println!("scripts: {} are sound by bash -n and shellcheck", scripts.len());
    Ok(())
}

/// Has actionlint read the workflows of this repository, and how they use its action.
fn check_workflows() -> Result<()> {
    let mut actionlint = Command::new(tools::install_actionlint()?);
    // Their scripts are read by the shellcheck that reads the others.
    actionlint.arg("-shellcheck").arg(tools::install_shellcheck()?);
    process::check(actionlint.current_dir(process::root()), "actionlint")?;
    println!("workflows: sound by actionlint");
    Ok(())
}

/// Holds manifests to the schemas of Kubernetes; fields that it does not know are refused.
fn check_manifests(manifests: &[&TextFile]) -> Result<()> {
    let mut validate = tools::kubernetes_validate()?;
    validate.current_dir(process::root()).args(["--strict", "--quiet"]);
    validate.args(manifests.iter().map(|manifest| &manifest.path));
    process::check(&mut validate, "kubernetes-validate")?;
    println!("manifests: {} are sound by kubernetes-validate", manifests.len());
    Ok(())
}

/// Has systemd read a unit, where there is one.
fn check_unit(unit: &TextFile) -> Result<()> {
    let path = Path::new(&unit.path);
    let name = path.file_name().and_then(|name| name.to_str()).context("a unit has a name")?;
    let Some(program) = process::on_path("systemd-analyze") else {
        println!("unit {name}: skipped, systemd-analyze is not on the path");
        return Ok(());
    };
    let folder = process::root().join("target/tmp").join(format!("deploy-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let copy = folder.join(name);
    std::fs::write(&copy, unit.text.replace(INSTALLED, STAND_IN))?;
    let said = Command::new(program).args(["verify", "--man=no"]).arg(&copy).output();
    std::fs::remove_dir_all(&folder)?;
    let said = said.context("cannot run systemd-analyze")?;
    let text = String::from_utf8_lossy(&said.stderr);
    // It goes on after a key that it does not know, and speaks of units of this machine as well.
    let ours: Vec<&str> = text.lines().filter(|line| line.contains(name)).collect();
    if !said.status.success() || !ours.is_empty() {
        bail!("{}: systemd-analyze verify says\n{text}", unit.path);
    }
    println!("unit {name}: sound by systemd-analyze verify");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn what_deploy_holds_names_flags_that_are_there() {
        let flags = flags_of(&sources().unwrap());
        assert!(flags.len() > 100, "{flags:?}");
        let findings = findings(&below("deploy").unwrap(), &flags);
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }

    #[test]
    fn flags_are_taken_from_the_sources() {
        let source = "#[arg(long, value_name = \"N\")]\n    pub(crate) agents_min: u8,\n\
                      #[arg(long = \"obj.size\")]\n    pub(crate) size: u8,\n\
                      #[arg(value_name = \"RUN\")]\n    pub(crate) run: u8,\n\
                      #[arg(long)]\n    #[serde(skip)]\n    join: u8,\n";
        let flags = flags_of(&[file("a.rs", source)]);
        assert_eq!(flags.into_iter().collect::<Vec<_>>(), ["agents-min", "join", "obj.size"]);
    }

    #[test]
    fn unknown_flags_and_secrets_are_found() {
        let flags = BTreeSet::from(["agents".to_owned(), "obj.size".to_owned()]);
        let files = [
            file("d/a.sh", "x --agents=4 -- --obj.size 1 --agent --FLAG ---\n# give `--wait`.\n"),
            file("d/b.yaml", "- --agents-max=$(N)\nkind: Secret\n"),
            file("d/README.md", "kubectl --dry-run\n"),
        ];
        assert_eq!(
            findings(&files, &flags),
            [
                "d/a.sh:1: plimsoll has no --agent",
                "d/b.yaml:1: plimsoll has no --agents-max",
                "d/b.yaml:2: a secret in clear text; refer to one by its name",
            ]
        );
    }
}
