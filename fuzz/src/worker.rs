//! Worker processes: a panic, an abort, a stack overflow or a hang of the tested code costs one request, not the whole
//! run.
//!
//! A request goes to the worker as one line on its standard input, and the answer comes back as one line on its standard
//! output, after [`READY`] when the worker starts. Lines that are not answers are prints of the tested code. The last
//! lines on its standard error, such as the message of a panic, are part of the reason for its death. Campaigns of
//! `flambeau fuzz` and replays of recordings (`cargo xtask conform`) use the same workers.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The line that a worker writes when it can receive requests.
pub const READY: &str = "ready";

/// Time limit for the start of a worker.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Number of lines of a worker's standard error that are kept, and of bytes of each.
const ERROR_LINES: usize = 8;
const ERROR_LINE_BYTES: usize = 1000;

/// Time limit for the end of the standard error of a process that has ended. Another process may hold it open.
const ERRORS_LIMIT: Duration = Duration::from_secs(1);

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerExit {
    /// The request exceeded the time limit, and the worker was killed.
    Timeout(Duration),
    /// The process ended.
    Ended {
        /// The exit status.
        status: String,
        /// The last lines on standard error, if any.
        errors: String,
    },
}

impl std::fmt::Display for WorkerExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WorkerExit::Timeout(limit) => write!(f, "no answer in {} s", limit.as_secs()),
            WorkerExit::Ended { status, errors } if errors.is_empty() => {
                write!(f, "the process died: {status}")
            }
            WorkerExit::Ended { status, errors } => write!(f, "the process died: {status}\n{errors}"),
        }
    }
}

/// A worker process; killed when dropped.
pub struct Worker {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// The last lines on standard error, sent when it ends.
    errors: Receiver<String>,
    /// Requests sent so far.
    pub served: usize,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// If the process cannot be started, or ends before it is ready.
    pub fn start(mut command: Command) -> Result<Worker, std::io::Error> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let missing = || std::io::Error::other("a worker without standard streams");
        let input = child.stdin.take().ok_or_else(missing)?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let (sender, output) = channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (sender, errors) = channel();
        // The receiver is gone if the worker was dropped.
        std::thread::spawn(move || sender.send(last_lines(stderr)));
        let ready = output.recv_timeout(START_LIMIT).is_ok_and(|line| line == READY);
        let mut worker = Worker { child, input, output, errors, served: 0 };
        if !ready {
            let exit_reason = worker.exit_reason();
            return Err(std::io::Error::other(format!("a worker does not start ({exit_reason})")));
        }
        Ok(worker)
    }

    /// Sends a request and returns the first line that `read` accepts as an answer.
    ///
    /// # Errors
    /// The way in which the worker died; it cannot be used any more.
    pub fn ask<T>(
        &mut self,
        line: &str,
        limit: Duration,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, WorkerExit> {
        self.served += 1;
        let sent = self.input.write_all(line.as_bytes()).and_then(|()| self.input.write_all(b"\n"));
        if sent.and_then(|()| self.input.flush()).is_err() {
            return Err(self.exit_reason());
        }
        let end = Instant::now() + limit;
        loop {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(answer) = read(&line) {
                        return Ok(answer);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(WorkerExit::Timeout(limit)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.exit_reason()),
            }
        }
    }

    fn exit_reason(&mut self) -> WorkerExit {
        // A dying process may close its pipes before it exits; its exit status is more informative than a closed pipe.
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        WorkerExit::Ended { status, errors: self.errors.recv_timeout(ERRORS_LIMIT).unwrap_or_default() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Either may fail because the process is gone already, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end and returns the last lines, without empty ones.
fn last_lines(from: impl Read) -> String {
    let mut kept = VecDeque::with_capacity(ERROR_LINES);
    for mut line in BufReader::new(from).split(b'\n').map_while(Result::ok).filter(|line| !line.is_empty()) {
        line.truncate(ERROR_LINE_BYTES);
        if kept.len() == ERROR_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    Vec::from(kept).join("\n")
}

/// The environment variable with the limit of a worker's address space: kibibytes, or `unlimited`, which programs need whose
/// memory a sanitizer shadows.
pub const ADDRESS_SPACE: &str = "FLAMBEAU_WORKER_KIB";

/// Returns a command that starts this program again, with a limited address space if a shell can limit it: a request
/// that exhausts memory then ends only its own worker. [`ADDRESS_SPACE`] changes the limit.
///
/// # Errors
/// If the path of this program is unknown.
pub fn current_program() -> Result<Command, std::io::Error> {
    let program = std::env::current_exe()?;
    if cfg!(unix) {
        let limit = std::env::var_os(ADDRESS_SPACE).unwrap_or_else(|| "8388608".into());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v \"$0\"; exec \"$@\""]).arg(limit).arg(program);
        return Ok(command);
    }
    Ok(Command::new(program))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_a_death_has_the_last_errors() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read request; seq 1 20 >&2; echo 'view.rs: overflow' >&2; exit 3"]);
        let mut worker = Worker::start(command).unwrap();
        let exit_reason =
            worker.ask("check 1", Duration::from_secs(60), |_| None::<()>).unwrap_err().to_string();
        assert!(exit_reason.starts_with("the process died: exit status: 3\n14\n"), "{exit_reason}");
        assert!(exit_reason.ends_with("\n20\nview.rs: overflow"), "{exit_reason}");
    }
}
