//! The project's own chores: the gate (`ci`), the tests with live servers, tidiness, tools,
//! benches.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to the person running it"
)]
#![expect(clippy::disallowed_methods, reason = "xtask owns its files, environment and waiting")]

mod bench;
mod chores;
mod deploy;
mod dist;
mod fuzz;
mod nightly;
mod process;
mod recount;
mod release;
mod servers;
mod site;
mod steps;
mod suite;
mod tidy;
mod tools;

use std::path::Path;
use std::process::ExitCode;

/// What shells use for a program ended by Ctrl-C: 128 and the number of SIGINT.
const INTERRUPTED_EXIT: u8 = 130;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci                       the gate that each change must pass: fmt, tidy, clippy and `test`
  test [--no-live | --all] [-- ARGS...]
                           the tests of the gate, with MinIO, versitygw, SeaweedFS, Swift and
                           nats-server beside them; --no-live leaves the servers out, --all runs
                           every test with every server; ARGS go to `cargo test` (give -p there to
                           test one package)
  nightly [STEP...]        what takes too long for the gate: doc, deploy, package, console (by
                           npm), lean, tests (all, with every server and a browser), site, fuzz,
                           proofs, recount; a step that has passed on this commit is not repeated
  recount [FIRST COUNT]    random plans in virtual time, and every figure of their reports counted
                           again from their op logs by testdata/recount, with the program in
                           target/release
  tidy                     the rules that no compiler knows: sizes, crate graph, words
  count [DIR]              lines that hold code, in source and in tests, by crate, of this or of
                           another checkout
  tools                    install everything that tests need into target/tools, and Chromium by
                           apt-get where there is none
  deploy                   scripts, manifests and units in deploy/, and the flags that they name
  site                     the documents as a site, in target/site, and every link in it
  dist [--program PATH] [--twice] [--wheel]
                           what people install, in target/dist: built for old systems, packed as
                           archive, wheel, deb, rpm and image, and each of these tried; PATH is a
                           program to pack instead of building one; --twice builds again in
                           another folder and compares; --wheel makes the wheel alone, for which
                           Rust, a C compiler, Python 3 with pip and objdump suffice
  release VERSION [--show] prepares a release: moves what is unreleased of CHANGELOG.md and
                           changelog.d under the version, writes the version wherever it is
                           named; --show only prints the version's changelog
  fuzz                     a minute of damaged input for the reader of warp's files
  deny                     licences, sources and bans of all dependencies, by cargo-deny
  bench analyse            CPU and memory of analysing 10^6, 10^7 and 10^8 operations
  bench cost [--quick]     client CPU per operation on the embedded store and on MinIO, beside wrk
                           and warp where they are there
  bench tls [--quick]      the same on MinIO over TLS
  bench cosbench [--quick] what COSBench's workloads cost, and what lies between their stages
  bench weed [--quick]     client CPU per file on SeaweedFS, beside weed benchmark
  bench files [--quick] [--rounds N] [--seconds N] [--only TEXT] [--program PATH]
                           CPU per operation and rates on files and names, beside fio, mdtest and
                           elbencho where they are there; TEXT is a part of a case's name, PATH a
                           build of plimsoll to take instead of making one
  bench fleet [--quick] [--only TEXT]
                           what a fleet takes on a nats-server on loopback, beside its targets;
                           TEXT is a part of a figure's name
";

fn main() -> ExitCode {
    process::watch_signals();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["ci"] => chores::ci(),
        ["test", rest @ ..] => match suite::Options::parse(rest) {
            Some(options) => suite::run(&options),
            None => return wrong_usage(),
        },
        ["nightly", names @ ..] => nightly::run(names),
        ["recount"] => nightly::recount(),
        ["recount", first, count] => match (first.parse(), count.parse()) {
            (Ok(first), Ok(count)) => nightly::recount_of(first, count),
            _ => return wrong_usage(),
        },
        ["tidy"] => tidy::run(),
        ["count"] => tidy::count::run(&process::root()),
        ["count", root] => tidy::count::run(Path::new(root)),
        ["tools"] => tools::install_all().map(drop),
        ["deploy"] => deploy::run(),
        ["site"] => site::run(),
        ["dist", rest @ ..] => match dist::Options::parse(rest) {
            Some(options) => dist::run(&options),
            None => return wrong_usage(),
        },
        ["release", version] => release::run(version, false),
        ["release", version, "--show"] => release::run(version, true),
        ["fuzz"] => fuzz::warp_reader(),
        ["deny"] => chores::deny(),
        ["bench", "cost"] => bench::cost(&bench::Plan::full()),
        ["bench", "cost", "--quick"] => bench::cost(&bench::Plan::quick()),
        ["bench", "tls"] => bench::tls(&bench::Plan::full()),
        ["bench", "tls", "--quick"] => bench::tls(&bench::Plan::quick()),
        ["bench", "cosbench"] => bench::cosbench(&bench::Plan::full()),
        ["bench", "cosbench", "--quick"] => bench::cosbench(&bench::Plan::quick()),
        ["bench", "weed"] => bench::weed(&bench::Plan::full()),
        ["bench", "weed", "--quick"] => bench::weed(&bench::Plan::quick()),
        ["bench", "analyse"] => bench::analyse(),
        ["bench", "files", rest @ ..] => match bench::FilesPlan::parse(rest) {
            Some(plan) => bench::files(&plan),
            None => return wrong_usage(),
        },
        ["bench", "fleet", rest @ ..] => bench::fleet(rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => return wrong_usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if process::interrupted() => {
            eprintln!("interrupted");
            ExitCode::from(INTERRUPTED_EXIT)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn wrong_usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}
