//! Programs without end whose memory no budget counts are ended by the growth of the process.

use super::{file, refused};

/// Strings, lists in lists, and dictionaries, each small.
const SOURCE: &str = "def strings(n: int):
    kept: List[str] = []
    for i in range(n):
        kept.append(str(i) + \"a text of some length, so that few iterations suffice\")
    return len(kept)

def lists(n: int):
    kept: List[List[int]] = []
    for i in range(n):
        kept.append([1, 2, 3])
    return len(kept)

def dictionaries(n: int):
    kept: List[Dict[int, int]] = []
    for i in range(n):
        kept.append({1: i})
    return len(kept)
";

#[test]
#[cfg(target_os = "linux")]
fn small_containers_and_strings_are_bounded() {
    let f = file("memory", "f.py", SOURCE);
    for entry in ["strings", "lists", "dictionaries"] {
        let args = ["run", &f, "-e", entry, "-a", "n=1000000000", "--memory", "200"];
        refused(&args, &["out of memory", "`run.memory` is 209715200 bytes"]);
    }
}

#[test]
fn views_without_number_are_refused_before_they_are_made() {
    let source = "def pieces():\n    return len(torch.zeros(1).expand(1 << 40).split(1))\n
def slices():\n    return len(torch.zeros(1).expand(1 << 40).unbind())\n";
    let f = file("memory", "views.py", source);
    for entry in ["pieces", "slices"] {
        refused(&["run", &f, "-e", entry], &["out of memory"]);
    }
}
