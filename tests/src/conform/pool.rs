//! Worker processes, one per job: each replays one case at a time and is killed when that takes too long.
//!
//! A case goes to the worker as one line on its standard input, the verdict comes back as one line on its standard
//! output. A thread here per worker feeds it; another reads its answers, so that waiting can end at the limit.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::case::{Case, Outcome, Verdict};
use super::corpus::Suite;
use super::options::Options;
use super::tally::Tally;
use super::worker::READY;

/// A worker is replaced after this many cases, so that what a process keeps for good (interned types and names)
/// stays small.
const CASES_PER_WORKER: usize = 2000;

/// How long a worker may take to be ready.
const START_LIMIT: Duration = Duration::from_secs(60);

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

/// Replays a suite and counts it.
///
/// # Errors
/// If the suite cannot be read or no worker can be started.
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

/// Takes jobs until there are no more, keeping one worker alive.
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
            match Worker::start(suite, options) {
                Ok(started) => worker = Some(started),
                Err(error) => {
                    let _ = answers.send(Err(error));
                    return;
                }
            }
        }
        let Some(current) = worker.as_mut() else { return };
        let verdict = current.ask(&job.line, options.limit);
        let alive = verdict.is_ok();
        let verdict = verdict.unwrap_or_else(|why| Verdict { outcome: Outcome::Panicked, why });
        if !alive {
            worker = None;
        }
        if answers.send(Ok(Answer { index: job.index, id: job.id, group: job.group, verdict })).is_err() {
            return;
        }
    }
}

/// A worker process; killed when dropped.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    served: usize,
}

impl Worker {
    fn start(suite: &Suite, options: &Options) -> anyhow::Result<Worker> {
        let mut command = worker_command()?;
        command.arg("--worker").arg(&suite.folder).args(options.ways.to_args());
        if let Some(folder) = &options.ways.through_save {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a worker")?;
        let input = child.stdin.take().context("the worker has no standard input")?;
        let lines = BufReader::new(child.stdout.take().context("the worker has no standard output")?);
        let (sender, output) = channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let ready = output.recv_timeout(START_LIMIT).is_ok_and(|line| line == READY);
        let mut worker = Worker { child, input, output, served: 0 };
        if !ready {
            let death = worker.death();
            anyhow::bail!("a worker does not start ({death}); `conform --worker .` says why");
        }
        Ok(worker)
    }

    /// Replays a case; an error (how the worker died) leaves the worker unusable.
    fn ask(&mut self, line: &str, limit: Duration) -> Result<Verdict, String> {
        self.served += 1;
        let sent = self.input.write_all(line.as_bytes()).and_then(|()| self.input.write_all(b"\n"));
        if sent.and_then(|()| self.input.flush()).is_err() {
            return Err(self.death());
        }
        let end = Instant::now() + limit;
        loop {
            // Programs under test print too; anything that is no verdict is theirs.
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(verdict) = Verdict::from_line(&line) {
                        return Ok(verdict);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(format!("no answer in {} s", limit.as_secs())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
            }
        }
    }

    fn death(&mut self) -> String {
        // It may be alive and mute; give it time to end by itself, which says more.
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => format!("the process died: {status}"),
            Err(error) => format!("the process died: {error}"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Either may fail because the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program again, with the address space bounded where a shell can bound it: a case that asks for all memory
/// then ends its own worker and not the machine's other programs.
fn worker_command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("where is this program?")?;
    if cfg!(unix) {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 8388608; exec \"$0\" \"$@\""]).arg(program);
        return Ok(command);
    }
    Ok(Command::new(program))
}

/// A line of counts on the terminal, rewritten as cases end.
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
