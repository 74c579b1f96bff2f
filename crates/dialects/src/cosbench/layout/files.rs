//! All files of an archive.

use super::{
    Archive, LogLine, driver_csv, file_name, histogram_csv, scripts_log, stage_csv, stage_file,
    summary_csv, worker_csv, workload_log,
};

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its name in the directory of the workload.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// Returns the files in the directory of a workload ([`Archive::directory`]); `config` is its
/// `workload-config.xml`.
pub fn files(archive: &Archive, config: String, log: &[LogLine]) -> Vec<ArchiveFile> {
    let file = |name: String, text: String| ArchiveFile { name, text };
    let directory = archive.directory();
    let mut files = vec![
        file(format!("{directory}.csv"), summary_csv(archive)),
        file(format!("{directory}-rt-histogram.csv"), histogram_csv(archive)),
        file("workload-config.xml".to_owned(), config),
        file("workload.log".to_owned(), workload_log(archive, log)),
        file("scripts.log".to_owned(), scripts_log(archive)),
    ];
    let mut drivers: Vec<&str> = Vec::new();
    for stage in &archive.stages {
        let id = file_name(&stage.id);
        files.push(file(stage_file(&stage.id), stage_csv(stage)));
        if !stage.workers.is_empty() {
            files.push(file(format!("{id}-worker.csv"), worker_csv(stage)));
        }
        for (driver, _) in &stage.drivers {
            if !drivers.contains(&&**driver) {
                drivers.push(driver);
            }
        }
    }
    for driver in drivers {
        files.push(file(format!("{}.csv", file_name(driver)), driver_csv(archive, driver)));
    }
    files
}
