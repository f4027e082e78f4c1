//! Runs the files of `tests/cases`; `FLAMBEAU_BLESS=1` updates the expected output, `FLAMBEAU_FILTER` selects files.

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

#[test]
fn every_trap_is_listed_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/traps");
    let table = std::fs::read_to_string(folder.join("README.md")).expect("the folder has a table");
    let files = std::fs::read_dir(&folder).expect("the folder is there");
    let names = files.filter_map(|f| Some(f.ok()?.file_name().to_str()?.strip_suffix(".py")?.to_owned()));
    let missing: Vec<String> = names.filter(|n| !table.contains(&format!("`{n}`"))).collect();
    assert!(missing.is_empty(), "tests/cases/traps/README.md has no row with {missing:?}");
}

/// The listing on the page about the machine is the expected output of a file test.
#[test]
fn the_documented_listing_is_the_bytecode() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect("the file is there");
    let (page, case) = (read("../docs/machine.md"), read("cases/run/machine_instructions.py"));
    let lines = case.lines().skip_while(|line| *line != "# == bytecode").skip(1);
    let listing: Vec<&str> = lines.map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    assert!(listing.len() > 10, "{case}");
    assert!(
        page.contains(&listing.join("\n")),
        "docs/machine.md lacks this listing:\n{}",
        listing.join("\n")
    );
}
