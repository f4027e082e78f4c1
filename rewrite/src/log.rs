//! Logging by pass and level. A [`Log`] is a value; the only global state is the environment variable that a session
//! reads when created.
//!
//! A filter is `name` (the graph before and after), `>name` (also each rewrite) or `>>name` (also rewrites that were
//! considered and rejected); `*` matches every pass. PyTorch's variable separates entries by colons and ours by commas;
//! both separators are accepted in both variables.

use std::fmt;
use std::sync::Arc;

/// The verbosity of the log of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// The graph before and after.
    Dump,
    /// Each rewrite.
    Update,
    /// Rewrites that were considered.
    Debug,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogLevel::Dump => "DUMP",
            LogLevel::Update => "UPDATE",
            LogLevel::Debug => "DEBUG",
        })
    }
}

/// Receiver of log messages.
pub trait LogSink: Send + Sync {
    /// Writes one message of one or more lines.
    fn write(&self, pass: &str, level: LogLevel, text: &str);
}

/// Writes messages to standard error, each line with a prefix such as `[DUMP cse]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

impl LogSink for Stderr {
    fn write(&self, pass: &str, level: LogLevel, text: &str) {
        for line in text.lines() {
            eprintln!("[{level} {pass}] {line}");
        }
    }
}

/// The filters for messages, and their sink.
#[derive(Clone, Default)]
pub struct Log {
    filters: Vec<(String, LogLevel)>,
    sink: Option<Arc<dyn LogSink>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("filters", &self.filters).finish_non_exhaustive()
    }
}

impl Log {
    /// Logs nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Logs the messages that match the text of filters.
    pub fn parse(filters: &str, sink: Arc<dyn LogSink>) -> Self {
        let filters = filters
            .split([',', ':'])
            .map(str::trim)
            .filter(|f| !f.is_empty())
            .map(|f| {
                let name = f.trim_start_matches('>');
                let level = match f.len() - name.len() {
                    0 => LogLevel::Dump,
                    1 => LogLevel::Update,
                    _ => LogLevel::Debug,
                };
                (name.trim().to_owned(), level)
            })
            .collect();
        Log { filters, sink: Some(sink) }
    }

    /// Logs the messages that `FLAMBEAU_LOG` selects (or `PYTORCH_JIT_LOG_LEVEL` if the former is not set) to standard
    /// error.
    pub fn from_env() -> Self {
        let text = ["FLAMBEAU_LOG", "PYTORCH_JIT_LOG_LEVEL"].iter().find_map(|n| std::env::var(n).ok());
        text.map_or_else(Self::off, |t| Self::parse(&t, Arc::new(Stderr)))
    }

    /// Whether messages of this level are enabled for a pass; `names` are its name and aliases.
    pub fn is_enabled(&self, names: &[&str], level: LogLevel) -> bool {
        self.sink.is_some()
            && self.filters.iter().any(|(n, l)| *l >= level && (n == "*" || names.contains(&n.as_str())))
    }

    /// Writes a message to the sink without checking the filters.
    pub fn write(&self, pass: &str, level: LogLevel, text: &str) {
        if let Some(sink) = &self.sink {
            sink.write(pass, level, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_name_and_level() {
        let log = Log::parse("cse,>alias:>>fuse", Arc::new(Stderr));
        assert!(log.is_enabled(&["cse"], LogLevel::Dump));
        assert!(!log.is_enabled(&["cse"], LogLevel::Update));
        assert!(log.is_enabled(&["x", "alias"], LogLevel::Update));
        assert!(log.is_enabled(&["fuse"], LogLevel::Debug));
        assert!(!log.is_enabled(&["dce"], LogLevel::Dump));
        assert!(Log::parse(">*", Arc::new(Stderr)).is_enabled(&["dce"], LogLevel::Update));
        assert!(!Log::off().is_enabled(&["dce"], LogLevel::Dump));
    }
}
