//! Logging by pass and level, as a value: nothing global but the environment variable read when a session is made.
//!
//! A filter is `name` (dumps: the graph before and after), `>name` (also each rewrite) or `>>name` (also what was
//! considered and refused); `*` names every pass. PyTorch's variable separates entries by colons, ours by commas; both
//! are read in both.

use std::fmt;
use std::sync::Arc;

/// How much of a pass's work is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The graph before and after.
    Dump,
    /// Each rewrite.
    Update,
    /// What was considered.
    Debug,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Dump => "DUMP",
            Level::Update => "UPDATE",
            Level::Debug => "DEBUG",
        })
    }
}

/// Where log lines go.
pub trait Sink: Send + Sync {
    /// One message, of one or more lines.
    fn write(&self, pass: &str, level: Level, text: &str);
}

/// Writes `[DUMP cse] …` with the prefix on every line to standard error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

impl Sink for Stderr {
    fn write(&self, pass: &str, level: Level, text: &str) {
        for line in text.lines() {
            eprintln!("[{level} {pass}] {line}");
        }
    }
}

/// Which messages are wanted, and where they go.
#[derive(Clone, Default)]
pub struct Log {
    filters: Vec<(String, Level)>,
    sink: Option<Arc<dyn Sink>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("filters", &self.filters).finish_non_exhaustive()
    }
}

impl Log {
    /// No messages.
    pub fn off() -> Self {
        Self::default()
    }

    /// The messages a filter text asks for.
    pub fn parse(filters: &str, sink: Arc<dyn Sink>) -> Self {
        let filters = filters
            .split([',', ':'])
            .map(str::trim)
            .filter(|f| !f.is_empty())
            .map(|f| {
                let name = f.trim_start_matches('>');
                let level = match f.len() - name.len() {
                    0 => Level::Dump,
                    1 => Level::Update,
                    _ => Level::Debug,
                };
                (name.trim().to_owned(), level)
            })
            .collect();
        Log { filters, sink: Some(sink) }
    }

    /// The messages `FLAMBEAU_LOG` asks for (or `PYTORCH_JIT_LOG_LEVEL` where that is not set), on standard error.
    pub fn from_env() -> Self {
        let text = ["FLAMBEAU_LOG", "PYTORCH_JIT_LOG_LEVEL"].iter().find_map(|n| std::env::var(n).ok());
        text.map_or_else(Self::off, |t| Self::parse(&t, Arc::new(Stderr)))
    }

    /// Whether messages of this level of a pass (known by any of `names`) are wanted.
    pub fn wants(&self, names: &[&str], level: Level) -> bool {
        self.sink.is_some()
            && self.filters.iter().any(|(n, l)| *l >= level && (n == "*" || names.contains(&n.as_str())))
    }

    /// Passes a message on, without asking whether it is wanted.
    pub fn write(&self, pass: &str, level: Level, text: &str) {
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
        assert!(log.wants(&["cse"], Level::Dump));
        assert!(!log.wants(&["cse"], Level::Update));
        assert!(log.wants(&["x", "alias"], Level::Update));
        assert!(log.wants(&["fuse"], Level::Debug));
        assert!(!log.wants(&["dce"], Level::Dump));
        assert!(Log::parse(">*", Arc::new(Stderr)).wants(&["dce"], Level::Update));
        assert!(!Log::off().wants(&["dce"], Level::Dump));
    }
}
