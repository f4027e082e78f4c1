//! Replays the recorded suites of `tests/data/suites`; every case must pass. Each case runs in a worker process.

use std::path::Path;
use std::process::Command;

/// Replays a suite with the given number of cases. The workers share the processors with other tests.
fn replay(suite: &str, cases: u64) {
    replay_with(suite, cases, &[]);
}

/// Replays a suite with options of the runner.
fn replay_with(suite: &str, cases: u64, options: &[&str]) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/suites").join(suite);
    let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suites");
    std::fs::create_dir_all(&reports).expect("the folder for reports can be made");
    let name = format!("{suite}{}", options.concat());
    let (counts, failures) = (reports.join(format!("{name}.json")), reports.join(format!("{name}.failures")));
    // The limit is generous: without optimization and beside other tests, the largest case takes a second or two.
    let status = Command::new(env!("CARGO_BIN_EXE_conform"))
        .arg(data)
        .args(options)
        .args(["--limit", "120", "--json"])
        .arg(&counts)
        .arg("--list-failures")
        .arg(&failures)
        .stdout(std::process::Stdio::null())
        .status()
        .expect("the runner starts");
    assert!(status.success(), "the runner failed: {status}");
    let failures = std::fs::read_to_string(failures).expect("the runner lists failures");
    // The list also has calls that were recorded operator by operator.
    let failures: Vec<&str> = failures.lines().filter(|line| !line.starts_with("recorded\t")).collect();
    assert!(failures.is_empty(), "{suite}:\n{}", failures.join("\n"));
    let counts = std::fs::read_to_string(counts).expect("the runner counts");
    let counts: serde_json::Value = serde_json::from_str(&counts).expect("the counts are JSON");
    assert_eq!(counts["suites"][0]["passed"].as_u64(), Some(cases), "{suite}: cases passed");
}

#[test]
fn kernels_at_odd_sizes_and_layouts() {
    replay("sizes", 1558);
}

#[test]
fn several_calls_of_one_program() {
    replay("calls", 51);
}

#[test]
fn gradients_of_scalars() {
    replay("grad", 44);
}

#[test]
fn second_derivatives_and_training() {
    replay("grad2", 134);
}

#[test]
fn derivatives_at_borders() {
    replay_with("corners", 166, &["--executor", "reference"]);
    replay("corners", 166);
    replay_with("corners", 166, &["--executor", "profiling", "--gradient-graphs"]);
}

#[test]
fn exported_programs() {
    replay("exported", 116);
}

#[test]
fn decomposed_programs() {
    replay_with("exported", 116, &["--through-decompositions"]);
}

#[test]
fn exported_programs_as_modules() {
    replay_with("exported", 116, &["--through-modules"]);
}

#[test]
fn hostile_programs() {
    replay("bad", 193);
}
