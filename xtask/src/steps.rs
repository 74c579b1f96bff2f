//! Runs checks one after the other, and tells how long each took.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// What a step took.
struct Taken {
    name: &'static str,
    wall: Duration,
    cpu: Duration,
}

/// The steps that have run.
#[derive(Default)]
pub(crate) struct Steps(Vec<Taken>);

impl Steps {
    /// Runs a step under its name.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        println!("== {name}");
        let (wall, cpu) = (Instant::now(), cpu_of_children());
        let outcome = step().with_context(|| name);
        self.0.push(Taken { name, wall: wall.elapsed(), cpu: cpu_of_children() - cpu });
        outcome
    }

    /// Returns a table of what each step took, in seconds.
    pub(crate) fn table(&self) -> String {
        let row = |name: &str, wall: Duration, cpu: Duration| {
            format!("{name:<12}{:>8.0}{:>8.0}\n", wall.as_secs_f64(), cpu.as_secs_f64())
        };
        let rows: String =
            self.0.iter().map(|taken| row(taken.name, taken.wall, taken.cpu)).collect();
        let (wall, cpu) = (
            self.0.iter().map(|taken| taken.wall).sum(),
            self.0.iter().map(|taken| taken.cpu).sum(),
        );
        format!("{:<12}{:>8}{:>8}\n{rows}{}", "step", "clock s", "CPU s", row("all", wall, cpu))
    }
}

/// Returns the processor time of all children that have ended, user and system.
fn cpu_of_children() -> Duration {
    // SAFETY: all zeros is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let of = |time: libc::timeval| {
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1_000)
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_and_the_sum_have_a_row() {
        let taken = |name, wall, cpu| Taken {
            name,
            wall: Duration::from_secs(wall),
            cpu: Duration::from_secs(cpu),
        };
        let steps = Steps(vec![taken("fmt", 2, 3), taken("tests", 600, 1_000)]);
        let rows = [
            "step         clock s   CPU s",
            "fmt                2       3",
            "tests            600    1000",
            "all              602    1003\n",
        ];
        assert_eq!(steps.table(), rows.join("\n"));
    }

    #[test]
    fn a_step_that_fails_is_named() {
        let failed = Steps::default().run("fmt", || anyhow::bail!("it is not formatted"));
        assert_eq!(format!("{:#}", failed.unwrap_err()), "fmt: it is not formatted");
    }
}
