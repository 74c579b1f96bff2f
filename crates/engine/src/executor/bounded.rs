//! How long one request may take.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_driver::{Completion, DriverError, Operation, Session};
use plimsoll_model::{Clock, ErrorClass, Moment};

use crate::clock::{Alarm, Waiting};
use crate::job::JobFacts;

/// How often an operation that takes long looks whether the user has asked to stop.
const STOP_LOOK: Duration = Duration::from_secs(1);
/// How long an operation that is under way may take after that: who has asked twice leaves without
/// a report.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Tells when requests of one session have taken too long. Its alarm goes on from one request to
/// the next, since most end long before it rings, and to set and take back one for each would cost
/// more than most of what is done for a request.
#[derive(Default)]
pub(super) struct OpTimer {
    /// When the request under way began.
    began: Moment,
    /// When the user was seen to have asked to stop while it was under way.
    stopped: Option<Moment>,
    /// Rings no later than the request under way is to be looked at.
    alarm: Alarm,
}

impl OpTimer {
    /// Takes note that a request begins.
    pub(super) fn begin(&mut self, now: Moment) {
        (self.began, self.stopped) = (now, None);
    }

    /// Ready, with the moment, when the request under way has taken longer than `most`, or than a
    /// user waits who has asked to stop.
    fn poll_over(
        &mut self,
        context: &mut Context<'_>,
        clock: &dyn Clock,
        most: Duration,
        asks_to_stop: impl Fn() -> bool,
    ) -> Poll<Moment> {
        loop {
            ready!(self.alarm.poll(context));
            // It may have been set for a request before this one.
            let now = clock.now();
            if self.stopped.is_none() && asks_to_stop() {
                self.stopped = Some(now);
            }
            let until = self.of_stop(most).unwrap_or(self.began.after(most));
            if now >= until {
                return Poll::Ready(now);
            }
            self.alarm.set(until.since(now).min(STOP_LOOK));
        }
    }

    /// Returns until when the request may take because the user has asked to stop, where it might
    /// take longer otherwise.
    fn of_stop(&self, most: Duration) -> Option<Moment> {
        let of_stop = self.stopped?.after(STOP_GRACE);
        Some(of_stop).filter(|of_stop| *of_stop < self.began.after(most))
    }
}

/// Executes `operation`, giving it up when it takes longer than the stage allows, or than a user
/// waits who has asked to stop.
pub(super) async fn bounded<S: Session>(
    facts: &JobFacts<'_>,
    timer: &mut OpTimer,
    session: &mut S,
    bucket: Option<&str>,
    operation: Operation<'_>,
    start: Moment,
) -> Completion {
    let most = facts.op_timeout;
    let given_up = match &facts.waiting {
        Waiting::Machine => {
            let mut executing = pin!(session.execute(bucket, operation));
            let asks_to_stop = || facts.stops.user.is_set();
            let over = poll_fn(|context| match executing.as_mut().poll(context) {
                Poll::Ready(completion) => Poll::Ready(Ok(completion)),
                Poll::Pending => {
                    timer.poll_over(context, &*facts.clock, most, asks_to_stop).map(Err)
                }
            });
            match over.await {
                Ok(completion) => {
                    timer.begin(completion.end);
                    return completion;
                }
                Err(now) => now,
            }
        }
        Waiting::Virtual(time) => {
            let latest = time.now().after(most);
            // A virtual driver answers at once and says when that will have been.
            let completion = session.execute(bucket, operation).await;
            time.sleep_until(completion.end.min(latest)).await;
            if completion.end <= latest {
                return completion;
            }
            latest
        }
    };
    let message = match timer.of_stop(most) {
        Some(_) => format!("no answer within {} s after the run was stopped", STOP_GRACE.as_secs()),
        None => format!("no answer within {} s", most.as_secs_f64()),
    };
    timer.begin(given_up);
    let error = DriverError::new(ErrorClass::Timeout, message);
    Completion::bare(session.endpoint(), given_up.max(start), Err(error))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The paused clock of a test's runtime, which jumps to the next timer.
    #[derive(Debug)]
    struct Paused(Instant);

    impl Clock for Paused {
        fn now(&self) -> Moment {
            Moment::EPOCH.after(self.0.elapsed())
        }
    }

    fn ms(ms: u32) -> Moment {
        Moment::EPOCH.after(MS * ms)
    }

    /// Runs a test in time that passes only while all wait.
    fn in_paused_time<F: Future<Output = ()>>(test: impl FnOnce(Paused) -> F) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the paused clock of this test")]
        runtime.block_on(async { test(Paused(Instant::now())).await });
    }

    /// Has a request wait for an answer until `until`, and returns when it was given up before.
    async fn wait(
        timer: &mut OpTimer,
        clock: &Paused,
        until: Moment,
        asks_to_stop: impl Fn() -> bool,
    ) -> Option<Moment> {
        let mut answer = Alarm::default();
        answer.set(until.since(clock.now()));
        poll_fn(|context| {
            if answer.poll(context).is_ready() {
                return Poll::Ready(None);
            }
            timer.poll_over(context, clock, 2_500 * MS, &asks_to_stop).map(Some)
        })
        .await
    }

    #[test]
    fn each_request_has_its_own_time_though_the_alarm_goes_on() {
        in_paused_time(async |clock| {
            let mut timer = OpTimer::default();
            // Requests that end in time leave an alarm that rings within later ones.
            for at in [0, 700, 1_400, 2_100, 2_800] {
                timer.begin(ms(at));
                assert_eq!(wait(&mut timer, &clock, ms(at + 700), || false).await, None);
            }
            let begun = clock.now();
            timer.begin(begun);
            let given_up = wait(&mut timer, &clock, ms(60_000), || false).await.unwrap();
            let took = given_up.since(begun);
            assert!((2_500 * MS..2_503 * MS).contains(&took), "{took:?}");
        });
    }

    #[test]
    fn who_asked_to_stop_waits_for_five_seconds_from_the_next_look() {
        in_paused_time(async |clock| {
            let mut timer = OpTimer::default();
            let asked = Cell::new(false);
            timer.begin(ms(0));
            // Nobody waits longer for having asked to stop.
            asked.set(true);
            let given_up = wait(&mut timer, &clock, ms(60_000), || asked.get()).await.unwrap();
            assert!((ms(2_500)..ms(2_503)).contains(&given_up), "{given_up:?}");
            assert_eq!(timer.of_stop(2_500 * MS), None);
            assert_eq!(timer.of_stop(60_000 * MS), timer.stopped.map(|at| at.after(STOP_GRACE)));
            timer.begin(clock.now());
            assert_eq!(timer.of_stop(60_000 * MS), None, "it is of the request before");
        });
    }
}
