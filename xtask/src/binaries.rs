//! Test binaries: built once, then run repeatedly with different environments.
//!
//! Several runs that differ only in their environment do not need cargo for each of them. In addition, if a test aborts
//! the process, [`Binary::run`] determines the test's name; cargo reports only the signal.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context;

use crate::process::cargo;

/// A test binary.
pub(crate) struct Binary {
    /// The folder of the package.
    folder: PathBuf,
    /// The target's name: an integration test (`complete`) or the package's library (`flambeau_tensor`).
    pub(crate) target: String,
    path: PathBuf,
}

/// The outcome of a run.
pub(crate) enum Ended {
    /// All tests passed; their number.
    Passed(u64),
    /// Tests failed or the process died; the report.
    Failed(String),
}

/// Builds the test binaries selected by `args` (`--workspace`, `--package …`, `--profile …`).
///
/// # Errors
/// Returns an error if the build fails.
pub(crate) fn build(args: &[&str]) -> anyhow::Result<Vec<Binary>> {
    Ok(messages(cargo(&["test", "--no-run"]).args(args))?.lines().filter_map(read).collect())
}

/// Builds the workspace's examples; returns their names and executables.
///
/// # Errors
/// Returns an error if the build fails.
pub(crate) fn examples() -> anyhow::Result<Vec<(String, PathBuf)>> {
    let text = messages(&mut cargo(&["build", "--workspace", "--examples"]))?;
    let example = |line: &str| {
        let target = &line[line.find("\"target\":{\"kind\":[\"example\"]")?..];
        Some((after(target, "\"name\":\"")?.to_owned(), PathBuf::from(after(line, "\"executable\":\"")?)))
    };
    Ok(text.lines().filter_map(example).collect())
}

/// Runs a command of cargo that builds; returns its messages in JSON, one a line.
fn messages(command: &mut Command) -> anyhow::Result<String> {
    command.args(["--message-format", "json-render-diagnostics"]).stderr(std::process::Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    anyhow::ensure!(output.status.success(), "the build failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a line of cargo's JSON messages; returns the test binary it describes. Programs are skipped: those that are
/// built for integration tests, and those with tests of their own, of which there are none.
fn read(line: &str) -> Option<Binary> {
    let (_, profile) = line.split_once("\"profile\":{")?;
    let (profile, _) = profile.split_once('}')?;
    profile.contains("\"test\":true").then_some(())?;
    let path = PathBuf::from(after(line, "\"executable\":\"")?);
    let manifest = after(line, "\"manifest_path\":\"")?;
    let target = &line[line.find("\"target\":{")?..];
    (!target.starts_with("\"target\":{\"kind\":[\"bin\"]")).then_some(())?;
    let folder = Path::new(manifest).parent()?.to_path_buf();
    Some(Binary { folder, target: after(target, "\"name\":\"")?.to_owned(), path })
}

/// Returns the string value of a key.
fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    Some(&rest[..rest.find('"')?])
}

impl Binary {
    /// Runs the tests with environment variables set.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be started.
    pub(crate) fn run(&self, variables: &[(&str, &str)], args: &[String]) -> anyhow::Result<Ended> {
        let output = self.output(variables, args)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            let passed = text.lines().find_map(|l| l.strip_prefix("test result: ok. "));
            let count = passed.and_then(|l| l.split(' ').next()?.parse().ok());
            return Ok(Ended::Passed(count.unwrap_or(0)));
        }
        let failed: Vec<&str> = text.lines().filter_map(|l| l.strip_suffix(" ... FAILED")).collect();
        if output.status.code().is_some() && !failed.is_empty() {
            return Ok(Ended::Failed(format!("{}\n{text}", failed.join(", "))));
        }
        // The process died. Run the tests one by one to find the one that aborts.
        let mut alone = args.to_vec();
        alone.extend(["--test-threads=1".to_owned(), "--nocapture".to_owned()]);
        let again = self.output(variables, &alone)?;
        let text = String::from_utf8_lossy(&again.stdout).into_owned();
        let begun = text.lines().rfind(|l| l.starts_with("test ") && l.contains(" ..."));
        let begun = begun.and_then(|l| l[5..].split(" ...").next());
        let (status, errors) = (again.status, String::from_utf8_lossy(&again.stderr).into_owned());
        let name = begun.filter(|_| !status.success()).unwrap_or("a test that passes when it runs alone");
        Ok(Ended::Failed(format!("{name} ended the process ({})\n{errors}", output.status)))
    }

    fn output(&self, variables: &[(&str, &str)], args: &[String]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).args(args).envs(variables.iter().copied());
        command.output().with_context(|| format!("cannot start {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_name_binaries() {
        let line = r#"{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/ops/Cargo.toml","target":{"kind":["test"],"name":"complete","test":true},"profile":{"test":true},"executable":"/w/target/debug/deps/complete-1","fresh":true}"#;
        let binary = read(line).unwrap();
        assert_eq!((binary.target.as_str(), binary.folder.as_path()), ("complete", Path::new("/w/ops")));
        assert!(read(&line.replace("\"/w/target/debug/deps/complete-1\"", "null")).is_none());
        assert!(read(&line.replace("{\"test\":true}", "{\"test\":false}")).is_none());
    }
}
