//! Tests of the queue with a runner that does as the text of each workload says.

use std::sync::mpsc::{Receiver, Sender, channel};

use plimsoll_conduct::Endpoint;

use super::*;
use crate::facts::{Facts, StagePlan, Trigger};
use crate::runner::{Job, Verdict};

/// Does as a workload says: `good`, `flawed`, `fails`, `panics`, or `waits` for leave to end.
pub(crate) struct Fake {
    begun: Mutex<Sender<String>>,
    leave: Mutex<Receiver<()>>,
}

pub(crate) struct Hand {
    pub(crate) begun: Receiver<String>,
    pub(crate) leave: Sender<()>,
}

pub(crate) fn fake() -> (Arc<Fake>, Hand) {
    let (begin, begun) = channel();
    let (leave, left) = channel();
    let fake = Fake { begun: Mutex::new(begin), leave: Mutex::new(left) };
    (Arc::new(fake), Hand { begun, leave })
}

impl Runner for Fake {
    fn check(&self, submission: &Submission<'_>) -> Result<Sound, Refusal> {
        let text = submission.text;
        if text.contains("broken") {
            let problem = Problem { line: Some(1), column: Some(2), ..Problem::error("broken") };
            return Err(Refusal { kind: SourceKind::Cosbench, problems: vec![problem] });
        }
        let name = text.split_once("name=\"").and_then(|(_, rest)| rest.split_once('"'));
        let name = submission.name.or(name.map(|(name, _)| name)).unwrap_or("plain");
        let call = text.split_once("trigger=\"").and_then(|(_, rest)| rest.split_once('"'));
        let trigger = |(call, _): (&str, &str)| Trigger { stage: None, call: call.to_owned() };
        let facts = Facts {
            stages: vec![StagePlan { name: "main".to_owned(), ..StagePlan::default() }],
            operations: vec!["GET".to_owned()],
            triggers: call.map(trigger).into_iter().collect(),
            touches: ["one", "two"]
                .map(str::to_owned)
                .into_iter()
                .filter(|of| text.contains(of))
                .collect(),
            targets: vec!["s3".to_owned()],
            ..Facts::default()
        };
        let host =
            |word: &str| word.strip_prefix("host=").map(|host| (Endpoint::new(host, 80), false));
        let hosts = text.split([' ', '"', ';', '/']).filter_map(host);
        let key = text.split_once("tokenname=").map_or("", |(_, key)| key);
        Ok(Sound {
            kind: SourceKind::Cosbench,
            name: name.to_owned(),
            // What the workload comes to holds no secret, but for what is none to its language.
            explained: key.to_owned(),
            facts,
            needs_leave: Vec::new(),
            problems: Vec::new(),
            hosts: Some(hosts.collect()),
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<Verdict, String> {
        let _ = lock(&self.begun).send(job.submission.text.to_owned());
        let text = job.submission.text;
        if text.contains("waits") {
            let leave = lock(&self.leave);
            while !job.stop.is_step_stopped() {
                match leave.recv_timeout(Duration::from_millis(5)) {
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    _ => break,
                }
            }
        }
        assert!(!text.contains("panics"), "as it was told");
        match text {
            text if text.contains("flawed") => Ok(Verdict::Flawed(None)),
            text if text.contains("fails") => Err("the store is away".to_owned()),
            _ => Ok(Verdict::Good),
        }
    }

    fn agents(&self) -> Vec<Agent> {
        Vec::new()
    }
}

pub(crate) fn settings(directory: &Path) -> Settings {
    Settings {
        directory: directory.join("console"),
        archive: directory.join("archive"),
        concurrency: 1,
        ..Settings::default()
    }
}

fn submit(console: &Arc<Console>, text: &str) -> Result<Number, ConsoleError> {
    let submitted = Submitted {
        text,
        file_name: None,
        name: None,
        user: "ann",
        first: false,
        resubmitted_from: None,
    };
    console.submit(&submitted).map(|(number, _)| number)
}

/// Opens a console in which one workload runs until it is let go and another one waits.
fn with_one_waiting(directory: &Path) -> (Arc<Console>, Hand) {
    let (runner, hand) = fake();
    let console = Console::open(settings(directory), runner).unwrap();
    submit(&console, "waits").unwrap();
    submit(&console, "good").unwrap();
    hand.begun.recv().unwrap();
    (console, hand)
}

/// Waits until nothing waits or runs any more.
fn settle(console: &Console) {
    let mut running = lock(&console.running);
    while !running.is_empty()
        || console.store.active().unwrap().iter().any(|entry| !entry.state.is_over())
    {
        let wait = console.idle.wait_timeout(running, Duration::from_millis(20));
        running = wait.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn state(console: &Console, number: i64) -> State {
    console.store.entry(Number(number)).unwrap().state
}

#[test]
fn workloads_run_one_after_the_other_and_end_as_they_went() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, _hand) = fake();
    let console = Console::open(settings(directory.path()), runner).unwrap();
    for text in ["good", "flawed", "fails", "panics"] {
        submit(&console, text).unwrap();
    }
    settle(&console);
    let states: Vec<State> = (1..=4).map(|number| state(&console, number)).collect();
    assert_eq!(states, [State::Finished, State::Failed, State::Terminated, State::Terminated]);
    let failed = console.store.entry(Number(3)).unwrap();
    assert_eq!(failed.error.as_deref(), Some("the store is away"));
    let history = disk::read_text(&directory.path().join("archive/run-history.csv")).unwrap();
    let lines: Vec<&str> = history.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("w1,plain,") && lines[1].contains(",finished,queuing @ "));
    assert_eq!(disk::read_text(&directory.path().join("archive/.meta")).unwrap(), "4");
}

#[test]
fn who_is_refused_uses_a_number_up_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, _hand) = fake();
    let console = Console::open(settings(directory.path()), runner).unwrap();
    let error = submit(&console, "broken").unwrap_err();
    assert_eq!(error.to_string(), "broken");
    let error = submit(&console, "trigger=\"a.sh()\"").unwrap_err();
    assert!(error.to_string().contains("--triggers"), "{error}");
    assert_eq!(submit(&console, "good").unwrap(), Number(3));
    settle(&console);
    assert_eq!(
        console.store.list(&crate::store::Filter { limit: 9, ..Default::default() }).unwrap().1,
        1
    );
    assert_eq!(disk::files_below(&directory.path().join("console/sealed")).unwrap(), []);
}

#[test]
fn secrets_lie_in_a_private_file_until_the_run_has_ended() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let console = Console::open(settings(directory.path()), runner).unwrap();
    let text = "<workload name=\"a/b\" config=\"secretkey=TOPSECRET;waits\"/>";
    let number = submit(&console, text).unwrap();
    assert_eq!(hand.begun.recv().unwrap(), text);
    let sealed = directory.path().join("console/sealed/w1");
    let mode = sealed.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for found in disk::files_below(&directory.path().join("console")).unwrap() {
        let Ok(facts) = directory.path().join("console").join(&found.name).metadata() else {
            continue;
        };
        assert_eq!(facts.permissions().mode() & 0o077, 0, "{}", found.name);
    }
    let config = directory.path().join("archive/w1-a_b/workload-config.xml");
    assert!(disk::read_text(&config).unwrap().contains("secretkey=*REDACTED*"));
    hand.leave.send(()).unwrap();
    settle(&console);
    assert!(!sealed.exists());
    assert!(matches!(console.resubmit(number, "ann"), Err(ConsoleError::NoSecrets(_))));
    drop(console);
    for found in disk::files_below(directory.path()).unwrap() {
        // The run's thread may close the database meanwhile, and its log then goes.
        let Ok(bytes) = disk::read(&directory.path().join(&found.name)) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("TOPSECRET"), "{}", found.name);
    }
}

#[test]
fn known_secrets_are_put_back_when_a_workload_is_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let settings = Settings { secrets: bound("lab", "S"), ..settings(directory.path()) };
    let console = Console::open(settings, runner).unwrap();
    let text = "<workload name=\"a\" config=\"secretpass=S;good;host=lab\"/>";
    let number = submit(&console, text).unwrap();
    settle(&console);
    let again = console.resubmit(number, "bob").unwrap();
    settle(&console);
    assert_eq!([hand.begun.recv().unwrap(), hand.begun.recv().unwrap()], [text, text]);
    let entry = console.store.entry(again).unwrap();
    assert_eq!((entry.resubmitted_from, &*entry.user), (Some(number), "bob"));
}

/// Returns the secret `secretpass` and `tokenname`, bound to a host.
fn bound(host: &str, secret: &str) -> Vec<BoundSecrets> {
    let hosts = NamedHosts::parse(host).unwrap();
    let by_key = ["secretpass", "tokenname"].map(|key| (key.to_owned(), secret.to_owned().into()));
    vec![BoundSecrets { hosts, by_key: BTreeMap::from(by_key) }]
}

#[test]
fn secrets_of_the_owner_go_to_no_host_that_the_owner_did_not_name() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let settings = Settings { secrets: bound("lab", "OWNERS"), ..settings(directory.path()) };
    let console = Console::open(settings, runner).unwrap();
    for text in [
        "<workload config=\"secretpass=x;good;host=evil\"/>",
        "<workload config=\"secretpass=x;good;host=lab;host=evil\"/>",
        // Where it would not say who asks but, say, what an object is called.
        "<workload config=\"tokenname=x;good;host=lab\"/>",
    ] {
        let number = submit(&console, text).unwrap();
        assert_eq!(hand.begun.recv().unwrap(), text);
        settle(&console);
        let error = console.resubmit(number, "ann").unwrap_err();
        assert!(matches!(error, ConsoleError::NoSecrets(_)), "{text}: {error}");
    }
    assert!(hand.begun.try_recv().is_err(), "nothing was run again");
}

#[test]
fn what_is_sealed_is_repeated_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let settings = Settings { keep_secrets: true, ..settings(directory.path()) };
    let console = Console::open(settings, runner).unwrap();
    let text = "<workload config=\"secretpass=ANNS;good;host=lab\"/>";
    let (secret, plain) = (submit(&console, text).unwrap(), submit(&console, "good").unwrap());
    settle(&console);
    let error = console.resubmit(secret, "bob").unwrap_err();
    assert_eq!(error.to_string(), "w1 has secrets of ann, who alone may repeat it");
    console.resubmit(plain, "bob").unwrap();
    console.resubmit(secret, "ann").unwrap();
    settle(&console);
    let begun: Vec<String> = hand.begun.try_iter().collect();
    assert_eq!(begun, [text, "good", "good", text]);
}

#[test]
fn what_waits_and_what_runs_can_be_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let console = Console::open(settings(directory.path()), runner).unwrap();
    let (first, second) = (submit(&console, "waits").unwrap(), submit(&console, "good").unwrap());
    hand.begun.recv().unwrap();
    console.cancel(second).unwrap();
    console.cancel(first).unwrap();
    settle(&console);
    assert_eq!((state(&console, 1), state(&console, 2)), (State::Cancelled, State::Cancelled));
    let error = console.cancel(first).unwrap_err();
    assert_eq!(error.to_string(), "w1 is cancelled, so that is not possible");
}

#[test]
fn runs_that_change_one_bucket_at_once_are_warned_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, hand) = fake();
    let settings = Settings { concurrency: 3, ..settings(directory.path()) };
    let console = Console::open(settings, runner).unwrap();
    for text in ["waits one two", "good three", "good two one"] {
        submit(&console, text).unwrap();
        hand.begun.recv().unwrap();
    }
    hand.leave.send(()).unwrap();
    settle(&console);
    let warned = |number| {
        let remarks = console.store.remarks(Number(number)).unwrap().into_iter();
        let texts = remarks.filter(|remark| remark.level == "warning").map(|remark| remark.text);
        texts.filter(|text| text.contains("at the same time")).collect::<Vec<_>>()
    };
    assert_eq!(warned(3), ["w1 works in one and 1 more at the same time"]);
    assert_eq!((warned(1), warned(2)), (vec![], vec![]));
}

#[test]
fn what_waited_runs_when_the_console_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let (console, _hand) = with_one_waiting(directory.path());
    let (other, _hand) = fake();
    let taken = Console::open(settings(directory.path()), other).err().unwrap();
    assert!(taken.to_string().starts_with("another console uses"), "{taken}");
    console.close();
    assert_eq!((state(&console, 1), state(&console, 2)), (State::Terminated, State::Queued));
    // The thread of a run may have hold of a console that is closed.
    let (runner, hand) = fake();
    let opened = Console::open(settings(directory.path()), runner).unwrap();
    drop(console);
    let console = opened;
    settle(&console);
    assert_eq!(hand.begun.recv().unwrap(), "good");
    assert_eq!(state(&console, 2), State::Finished);
}

#[test]
fn an_archive_that_cannot_be_written_costs_the_archive_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (runner, _hand) = fake();
    let settings = settings(directory.path());
    let archive = settings.archive.clone();
    let console = Console::open(settings, runner).unwrap();
    // Somebody else's.
    disk::make(&archive.join("w1-plain")).unwrap();
    submit(&console, "good").unwrap();
    submit(&console, "good").unwrap();
    settle(&console);
    let entry = console.store.entry(Number(1)).unwrap();
    assert_eq!(entry.state, State::Finished);
    let error = entry.archive_error.unwrap();
    assert!(error.contains("File exists"), "{error}");
    assert_eq!(state(&console, 2), State::Finished);
}

#[test]
fn what_cosbench_archived_stays_as_it_is_and_its_numbers_are_not_given_again() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("archive");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/testdata/cosbench/archive");
    for name in ["w1-demo", "w29-r-errors", ""] {
        disk::make(&archive.join(name)).unwrap();
        for file in disk::files_below(&from.join(name)).unwrap() {
            if !file.name.contains('/') {
                let content = disk::read(&from.join(name).join(&file.name)).unwrap();
                disk::write(&archive.join(name).join(&file.name), &content).unwrap();
            }
        }
    }
    let listed = || {
        let found = ["w1-demo", "w29-r-errors"].map(|name| {
            let files = disk::files_below(&archive.join(name)).unwrap();
            let content = |file: &disk::Found| disk::read(&archive.join(name).join(&file.name));
            files.iter().map(|file| content(file).unwrap()).collect::<Vec<_>>()
        });
        found.concat()
    };
    let before = listed();
    for opened in 1..=2 {
        let (runner, _hand) = fake();
        let console = Console::open(settings(directory.path()), runner).unwrap();
        assert!(console.store.entry(Number(1)).is_err(), "only runs of this console are listed");
        // The history of the archive counts up to w44.
        assert_eq!(submit(&console, "good").unwrap(), Number(44 + opened));
        settle(&console);
        console.close();
    }
    assert_eq!(listed(), before);
    let history = disk::read_text(&archive.join("run-history.csv")).unwrap();
    assert!(history.lines().last().unwrap().starts_with("w46,plain,"), "{history}");
}

#[test]
fn what_the_database_does_not_take_is_offered_again() {
    let directory = tempfile::tempdir().unwrap();
    let (console, hand) = with_one_waiting(directory.path());
    // As a full disk does.
    let other = rusqlite::Connection::open(directory.path().join("console/console.sqlite"));
    let other = other.unwrap();
    let full =
        "CREATE TRIGGER full BEFORE UPDATE ON workload BEGIN SELECT RAISE(FAIL, 'full'); END";
    other.execute_batch(full).unwrap();
    hand.leave.send(()).unwrap();
    while lock(&console.unsettled).is_empty() {
        thread::yield_now();
    }
    other.execute_batch("DROP TRIGGER full").unwrap();
    settle(&console);
    assert_eq!([1, 2].map(|number| state(&console, number)), [State::Finished; 2]);
}
