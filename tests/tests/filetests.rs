//! Runs the files of `tests/cases`; `FLAMBEAU_BLESS=1` writes what they expect, `FLAMBEAU_FILTER` chooses some.

use std::path::Path;

use flambeau_tests::filetest::runner::{Options, run};

#[test]
fn files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let summary = run(&folder, &Options::from_env()).expect("the folder of cases is there");
    println!("{} files, {} checks", summary.files, summary.checks);
    assert!(summary.files > 0, "no file was run");
    let failures = summary.failures.join("\n");
    assert!(failures.is_empty(), "{} failures:\n{failures}", summary.failures.len());
}
