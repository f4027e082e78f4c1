//! Campaigns in worker processes, for programs that abort on panic: there a case that panics, overflows the stack,
//! hangs or is killed would end the whole search. Cases are identified by their numbers and reductions by the
//! candidates taken, so a request is a few numbers, and each process generates the case itself.
//!
//! A request is `check N LAST PATH…` or `text N LAST PATH…`: case number `N`, truncated after step `LAST` (0: not
//! truncated), after the reductions `PATH…`. The answer is one line of [`ANSWER_PREFIX`], a word, and a text.

use crate::campaign::{Campaign, MAX_STEPS, Tally};
use crate::case::Case;
use crate::oracle::{CheckOutcome, Oracle};
use crate::reduce::candidates;
use crate::worker::{READY, Worker, WorkerExit};
use std::io::{BufRead, Write};
use std::mem::discriminant;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Prefix of answers; other lines are prints of the tested code.
const ANSWER_PREFIX: &str = "\u{1}case";

/// Number of requests after which a worker is replaced: interned types and names are never freed.
const REQUESTS_PER_WORKER: usize = 5_000;

/// Maximum number of checks during the reduction of a failing case.
const REDUCTIONS: usize = 2_000;

/// Returns a new random seed.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(32)
}

/// A failure found in worker processes.
#[derive(Clone, Debug)]
pub struct WorkerFinding {
    /// Number of the case in its campaign.
    pub number: u64,
    /// The smallest form found, as a file test.
    pub text: String,
    /// The failure.
    pub why: String,
}

/// A case, identified by its number and its reductions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CaseId {
    number: u64,
    last: usize,
    path: Vec<usize>,
}

impl CaseId {
    fn request(&self, what: &str) -> String {
        let path: Vec<String> = self.path.iter().map(usize::to_string).collect();
        format!("{what} {} {} {}", self.number, self.last, path.join(" "))
    }

    fn read(line: &str) -> Option<(&str, CaseId)> {
        let mut words = line.split_whitespace();
        let (what, number, last) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let path: Option<Vec<usize>> = words.map(|w| w.parse().ok()).collect();
        Some((what, CaseId { number, last, path: path? }))
    }
}

/// Runs the worker: answers requests from standard input until the input ends.
///
/// # Errors
/// If standard input or output fails.
pub fn serve(campaign: &Campaign, oracle: &dyn Oracle) -> std::io::Result<()> {
    println!("{READY}");
    let mut base: Option<(CaseId, Case)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some((what, id)) = CaseId::read(&line) else { continue };
        let (word, text) = match case_of(campaign, &id, &mut base) {
            None => ("none", String::new()),
            Some(case) if what == "text" => ("text", case.to_text()),
            Some(case) => {
                let before = oracle.failed_guards();
                let outcome = oracle.check(&case);
                answer(outcome, oracle.failed_guards() - before)
            }
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{ANSWER_PREFIX} {word} {}", text.escape_default())?;
        out.flush()?;
    }
    Ok(())
}

/// Returns the word and the text of an answer. The text of a case that holds is the number of guards that failed in it.
fn answer(outcome: CheckOutcome, failed_guards: u64) -> (&'static str, String) {
    match outcome {
        CheckOutcome::Checked => ("checked", failed_guards.to_string()),
        CheckOutcome::Changed => ("changed", failed_guards.to_string()),
        CheckOutcome::Rejected(why) => ("rejected", why.to_owned()),
        CheckOutcome::Timeout => ("timeout", String::new()),
        CheckOutcome::Failed(why) => ("failed", why),
    }
}

/// Returns the case of an id; `None` if a step of the path is after the last candidate. Caches the case from which the
/// path's last step starts.
fn case_of(campaign: &Campaign, id: &CaseId, base: &mut Option<(CaseId, Case)>) -> Option<Case> {
    let Some((&pick, before)) = id.path.split_last() else {
        return Some(match id.last {
            0 => campaign.case(id.number),
            last => campaign.case_until(id.number, last),
        });
    };
    let before = CaseId { path: before.to_vec(), ..*id };
    if base.as_ref().is_none_or(|(known, _)| *known != before) {
        let case = case_of(campaign, &before, &mut None)?;
        *base = Some((before, case));
    }
    base.as_ref().and_then(|(_, case)| candidates(case).nth(pick))
}

/// A search in worker processes.
pub struct IsolatedCampaign<'a> {
    /// Creates the command of a worker, which must call [`serve`].
    pub worker: &'a (dyn Fn() -> std::io::Result<Command> + Sync),
    /// Number of workers that run concurrently.
    pub jobs: usize,
    /// Time limit of one case.
    pub limit: Duration,
}

impl IsolatedCampaign<'_> {
    /// Checks cases until `cases` of them, `time`, or the first failure, which is reduced.
    ///
    /// # Errors
    /// If no worker can be started.
    pub fn run(
        &self,
        cases: u64,
        time: Duration,
        progress: &(dyn Fn(&Tally) + Sync),
    ) -> std::io::Result<(Tally, Option<WorkerFinding>)> {
        let (start, next, stop) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
        let tally = Mutex::new(Tally::default());
        let found: Mutex<Option<(CaseId, CaseFailure)>> = Mutex::new(None);
        let work = || -> std::io::Result<()> {
            let mut client = WorkerClient { isolated: self, worker: None };
            while !stop.load(Ordering::Relaxed) && start.elapsed() < time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= cases {
                    break;
                }
                let id = CaseId { number, last: 0, path: Vec::new() };
                let answer = client.check(&id)?;
                if let Ok(mut tally) = tally.lock() {
                    tally.add(&answer.outcome());
                    tally.failed_guards += answer.failed_guards();
                    progress(&tally);
                }
                if let Some(failure) = answer.failure()
                    && !stop.swap(true, Ordering::Relaxed)
                {
                    found.lock().map_err(|_| std::io::Error::other("poisoned"))?.replace((id, failure));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, std::io::Result<()>>| {
                t.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")))
            };
            threads.into_iter().try_for_each(join)
        })?;
        let tally = tally.lock().map(|t| *t).unwrap_or_default();
        let found = found.into_inner().ok().flatten();
        let reduced = |(id, first)| WorkerClient { isolated: self, worker: None }.reduced(id, first);
        let found = found.map(reduced).transpose()?;
        Ok((tally, found))
    }
}

/// The answer to a request to check a case.
enum Answer {
    /// There is no such case.
    Absent,
    /// The outcome, and the number of guards that failed.
    Given(CheckOutcome, u64),
    Died(WorkerExit),
}

/// The way a case fails. A smaller case has to fail in the same way: on a busy machine, any case may exceed the time
/// limit.
#[derive(Debug, PartialEq)]
enum CaseFailure {
    Reported(String),
    Died(WorkerExit),
}

impl Answer {
    fn outcome(&self) -> CheckOutcome {
        match self {
            Answer::Absent => CheckOutcome::Rejected("there is no such case"),
            Answer::Given(outcome, _) => outcome.clone(),
            Answer::Died(death) => CheckOutcome::Failed(death.to_string()),
        }
    }

    fn failed_guards(&self) -> u64 {
        match self {
            Answer::Given(_, failed_guards) => *failed_guards,
            _ => 0,
        }
    }

    fn failure(&self) -> Option<CaseFailure> {
        match self {
            Answer::Given(CheckOutcome::Failed(why), _) => Some(CaseFailure::Reported(why.clone())),
            Answer::Died(death) => Some(CaseFailure::Died(death.clone())),
            _ => None,
        }
    }

    fn fails_like(&self, first: &CaseFailure) -> bool {
        match (self.failure(), first) {
            (Some(CaseFailure::Reported(_)), CaseFailure::Reported(_)) => true,
            (Some(CaseFailure::Died(death)), CaseFailure::Died(first)) => {
                discriminant(&death) == discriminant(first)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CaseFailure::Reported(why) => f.write_str(why),
            CaseFailure::Died(death) => death.fmt(f),
        }
    }
}

/// Sends requests to one worker, and replaces the worker when it dies.
struct WorkerClient<'a> {
    isolated: &'a IsolatedCampaign<'a>,
    worker: Option<Worker>,
}

impl WorkerClient<'_> {
    fn check_in_worker(&mut self, line: &str) -> std::io::Result<Result<(String, String), WorkerExit>> {
        if self.worker.as_ref().is_some_and(|w| w.served >= REQUESTS_PER_WORKER) {
            self.worker = None;
        }
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::start((self.isolated.worker)()?)?),
        };
        let answer = worker.ask(line, self.isolated.limit, |line| {
            let (word, text) = line.strip_prefix(ANSWER_PREFIX)?.trim_start().split_once(' ')?;
            Some((word.to_owned(), unescaped(text)))
        });
        if answer.is_err() {
            self.worker = None;
        }
        Ok(answer)
    }

    fn check(&mut self, id: &CaseId) -> std::io::Result<Answer> {
        let (word, text) = match self.check_in_worker(&id.request("check"))? {
            Ok(answer) => answer,
            Err(death) => return Ok(Answer::Died(death)),
        };
        let failed_guards = text.parse().unwrap_or(0);
        let outcome = match word.as_str() {
            "none" => return Ok(Answer::Absent),
            "checked" => CheckOutcome::Checked,
            "changed" => CheckOutcome::Changed,
            "failed" => CheckOutcome::Failed(text),
            "timeout" => CheckOutcome::Timeout,
            _ => CheckOutcome::Rejected("see the worker"),
        };
        Ok(Answer::Given(outcome, failed_guards))
    }

    /// Returns the smallest form of a case that failed because of `first`.
    ///
    /// A case may fail only sometimes: a time limit on a busy machine, or a random operator. The reason is then that of
    /// the first failure, with a remark.
    fn reduced(&mut self, mut id: CaseId, first: CaseFailure) -> std::io::Result<WorkerFinding> {
        // If the trial of a program kills the process that generates it, the case is the program under trial.
        if self.check_in_worker(&id.request("text"))?.is_err() {
            for last in 1..=MAX_STEPS {
                let cut = CaseId { last, ..id.clone() };
                if self.check(&cut)?.fails_like(&first) {
                    id = cut;
                    break;
                }
            }
        }
        // Sweeps over the candidates until no candidate of a whole sweep fails. After a smaller case is found, the
        // sweep continues at its next candidate, because the earlier ones have just been tried.
        let (mut pick, mut smaller) = (0, false);
        for _ in 0..REDUCTIONS {
            let mut candidate = id.clone();
            candidate.path.push(pick);
            match self.check(&candidate)? {
                Answer::Absent if smaller => (pick, smaller) = (0, false),
                Answer::Absent => break,
                answer if answer.fails_like(&first) => (id, smaller) = (candidate, true),
                _ => pick += 1,
            }
        }
        let why = match self.check(&id)?.failure() {
            Some(failure) => failure.to_string(),
            None => format!("{first}\n(checked again, the case did not fail)"),
        };
        let text = self
            .check_in_worker(&id.request("text"))?
            .map_or_else(|death| death.to_string(), |(_, text)| text);
        Ok(WorkerFinding { number: id.number, text, why })
    }
}

/// Reverses `escape_default`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let digits: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
                out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            Some(c) => out.push(c),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_texts_round_trip() {
        let id = CaseId { number: 7, last: 2, path: vec![0, 11] };
        assert_eq!(CaseId::read(&id.request("check")), Some(("check", id)));
        let text = "graph(%x : str):\n  \"é\\\t'\"\r\n";
        assert_eq!(unescaped(&text.escape_default().to_string()), text);
    }

    #[test]
    fn a_smaller_case_fails_in_the_same_way() {
        let reported = || Answer::Given(CheckOutcome::Failed("differs".to_owned()), 0);
        let late = || Answer::Died(WorkerExit::Timeout(Duration::from_secs(20)));
        let killed =
            || Answer::Died(WorkerExit::Ended { status: "signal 11".to_owned(), errors: String::new() });
        for (i, first) in [reported, late, killed].iter().enumerate() {
            let first = first().failure().unwrap();
            for (k, next) in [reported, late, killed].iter().enumerate() {
                assert_eq!(next().fails_like(&first), i == k, "{first}, then {:?}", next().outcome());
            }
            assert!(
                !Answer::Given(CheckOutcome::Timeout, 0).fails_like(&first)
                    && !Answer::Absent.fails_like(&first)
            );
        }
    }
}
