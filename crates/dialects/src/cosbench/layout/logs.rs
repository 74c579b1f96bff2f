//! The logs of an archive: lines with banners between stages and missions.

use super::{Archive, StateAt};

/// A line of the log of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The id of its stage: `s3-main`.
    pub stage: String,
    /// The driver that it is of.
    pub driver: String,
    /// When, local, `yyyy-MM-dd HH:mm:ss,SSS`.
    pub at: String,
    /// `INFO`, `WARN` or `ERROR`.
    pub level: String,
    /// Who says it.
    pub of: String,
    /// What is said, in one line.
    pub text: String,
}

fn banner(rule: char, width: usize, text: &str) -> String {
    // Bound: the callers' constants.
    let rule = String::from(rule).repeat(width);
    format!("{rule} {text} {rule}\n")
}

/// Returns a line of a log.
pub fn log_line(line: &LogLine) -> String {
    let LogLine { at, level, of, text, .. } = line;
    let text = text.replace(char::is_control, " ");
    format!("{at} [{level}] [{of}] - {text}\n")
}

/// Returns `workload.log`: the lines of each stage, driver by driver. A mission is the stage on one
/// driver; it has no id of its own here.
pub fn workload_log(archive: &Archive, lines: &[LogLine]) -> String {
    let mut out = String::new();
    let ran = |stage: &&super::ArchivedStage| stage.states.iter().any(is_running);
    for stage in archive.stages.iter().filter(ran) {
        out.push_str(&banner('=', 50, &format!("stage: {}", stage.id)));
        let own: Vec<&LogLine> = lines.iter().filter(|line| line.stage == stage.id).collect();
        let mut drivers: Vec<&str> = Vec::new();
        for line in &own {
            if !drivers.contains(&&*line.driver) {
                drivers.push(&line.driver);
            }
        }
        for driver in drivers {
            let mission = format!("mission: {}, driver: {driver}", stage.id);
            out.push_str(&banner('-', 34, &mission));
            let of_driver = own.iter().filter(|line| line.driver == driver);
            of_driver.for_each(|line| out.push_str(&log_line(line)));
        }
    }
    out
}

fn is_running(state: &StateAt) -> bool {
    state.state == "booting"
}

/// Returns `scripts.log`: no scripts are run, so it has banners only.
pub fn scripts_log(archive: &Archive) -> String {
    let mut out = banner('=', 50, "workload level");
    let ids = archive.stages.iter().map(|stage| banner('=', 50, &format!("stage: {}", stage.id)));
    out.extend(ids);
    out
}
