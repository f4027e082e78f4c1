//! Replays the cases of a suite in worker processes ([`flambeau_fuzz::worker`]), as many as the option `--jobs` states.
//!
//! Each worker replays one case at a time and is killed if the case exceeds the time limit. One thread per worker feeds
//! it.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use flambeau_fuzz::worker::{Worker, current_program};

use super::case::{Case, Outcome, Verdict};
use super::corpus::Suite;
use super::options::Options;
use super::tally::Tally;

/// Number of cases after which a worker is replaced, to bound the memory that a process never frees (interned types and
/// names).
const CASES_PER_WORKER: usize = 2000;

struct Job {
    index: usize,
    id: String,
    group: String,
    line: String,
}

struct Answer {
    index: usize,
    id: String,
    group: String,
    verdict: Verdict,
}

/// Replays a suite and counts the outcomes.
///
/// # Errors
/// Returns an error if the suite cannot be read or a worker cannot be started.
pub fn replay(suite: &Suite, options: &Options, tally: &mut Tally) -> anyhow::Result<()> {
    tally.start(&suite.name);
    let (jobs, waiting) = sync_channel::<Job>(4 * options.jobs);
    let waiting = Arc::new(Mutex::new(waiting));
    let (answers, answered) = channel::<anyhow::Result<Answer>>();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            let (waiting, answers) = (waiting.clone(), answers.clone());
            scope.spawn(move || serve(suite, options, &waiting, &answers));
        }
        drop(answers);
        drop(waiting);
        let feeder = scope.spawn(move || feed(suite, options, &jobs));
        let mut progress = Progress::new(&suite.name);
        let mut broken = None;
        for answer in answered {
            match answer {
                Ok(a) => {
                    progress.add(a.verdict.outcome);
                    tally.add(a.index, &a.id, &a.group, a.verdict);
                }
                Err(error) => broken = Some(error),
            }
        }
        progress.end();
        tally.end();
        let fed = feeder.join().unwrap_or_else(|_| Err(anyhow::anyhow!("reading the suite panicked")));
        broken.map_or(fed, Err)
    })
}

fn feed(suite: &Suite, options: &Options, jobs: &std::sync::mpsc::SyncSender<Job>) -> anyhow::Result<()> {
    let mut index = 0;
    let mut bad = None;
    suite.for_each(|line| {
        let case = match Case::parse(&line) {
            Ok(case) => case,
            Err(why) => {
                bad = Some(anyhow::anyhow!("{}: case {index}: {why}", suite.name));
                return false;
            }
        };
        let id = case.id().to_string();
        if options.filter.as_ref().is_some_and(|f| !id.contains(f.as_str())) {
            return true;
        }
        let job = Job { index, id, group: case.group().to_string(), line };
        index += 1;
        jobs.send(job).is_ok()
    })?;
    bad.map_or(Ok(()), Err)
}

/// Processes jobs with one worker process at a time until there are no more jobs.
fn serve(
    suite: &Suite,
    options: &Options,
    jobs: &Mutex<Receiver<Job>>,
    answers: &Sender<anyhow::Result<Answer>>,
) {
    let mut worker: Option<Worker> = None;
    loop {
        let job = match jobs.lock() {
            Ok(jobs) => jobs.recv(),
            Err(_) => return,
        };
        let Ok(job) = job else { return };
        if worker.as_ref().is_some_and(|w| w.served >= CASES_PER_WORKER) {
            worker = None;
        }
        if worker.is_none() {
            match start(suite, options) {
                Ok(started) => worker = Some(started),
                Err(error) => {
                    let _ = answers.send(Err(error));
                    return;
                }
            }
        }
        let Some(current) = worker.as_mut() else { return };
        let verdict = current.ask(&job.line, options.limit, Verdict::from_line);
        let alive = verdict.is_ok();
        let verdict =
            verdict.unwrap_or_else(|death| Verdict { outcome: Outcome::Panicked, why: death.to_string() });
        if !alive {
            worker = None;
        }
        if answers.send(Ok(Answer { index: job.index, id: job.id, group: job.group, verdict })).is_err() {
            return;
        }
    }
}

/// Starts a worker for cases of a suite.
fn start(suite: &Suite, options: &Options) -> anyhow::Result<Worker> {
    let mut command = current_program().context("cannot find the path of this program")?;
    command.arg("--worker").arg(&suite.folder).args(options.variants.to_args());
    if let Some(folder) = &options.variants.through_save {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    Worker::start(command).context("cannot start a worker; `conform --worker .` prints the reason")
}

/// A progress line on the terminal.
struct Progress {
    name: String,
    counts: [usize; 4],
    shown: Instant,
    on: bool,
}

impl Progress {
    fn new(name: &str) -> Progress {
        let on = std::io::stderr().is_terminal();
        Progress { name: name.to_string(), counts: [0; 4], shown: Instant::now(), on }
    }

    fn add(&mut self, outcome: Outcome) {
        self.counts[outcome as usize] += 1;
        if self.on && self.shown.elapsed() > Duration::from_millis(100) {
            let [passed, failed, unsupported, panicked] = self.counts;
            let name = &self.name;
            eprint!(
                "\r{name}: {passed} passed, {failed} failed, {unsupported} unsupported, {panicked} panicked "
            );
            self.shown = Instant::now();
        }
    }

    fn end(&self) {
        if self.on {
            eprint!("\r\x1b[K");
        }
    }
}
