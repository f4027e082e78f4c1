//! A process that is killed during a write leaves the old file or the new one.

use super::{accepted, file, folder};
use flambeau::archive::{replace_file, save_state_dict};
use flambeau::tensor::{DType, Scalar, Tensor};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_killed_command_leaves_no_partial_file() {
    let input = folder("killed").join("in.pt");
    let tensor = Tensor::full(&[1 << 21], Scalar::Float(0.5), DType::F32).expect("8 MB");
    let weights = [("w".to_owned(), tensor)].into_iter().collect();
    replace_file(&input, |out| save_state_dict(&weights, out)).expect("written");
    let input = input.to_string_lossy().into_owned();
    let whole = folder("killed/whole").join("out.pt").to_string_lossy().into_owned();
    accepted(&["convert", &input, &whole]);
    let new = std::fs::read(&whole).expect("written");
    let mut seen = [0, 0];
    for delay in (0..24).map(|n| Duration::from_millis(n * 4)) {
        let old = b"what was there";
        let output = file("killed", "out.pt", old);
        let mut child = Command::new(env!("CARGO_BIN_EXE_flambeau"))
            .args(["convert", &input, &output])
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        std::thread::sleep(delay);
        child.kill().expect("it is there or done");
        child.wait().expect("it ended");
        let left = std::fs::read(&output).expect("there is always a file");
        assert!(left == old || left == new, "{} bytes after {delay:?}", left.len());
        seen[usize::from(left == new)] += 1;
    }
    assert!(seen[0] > 0, "none was killed early: {seen:?}");
    accepted(&["convert", &input, &file("killed", "out.pt", "what was there")]);
}
