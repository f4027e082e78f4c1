//! Mutated exported programs, without a coverage-guided fuzzer: reads, verifies, prints and lowers changed files and JSON texts for a
//! time. A panic writes the input to a file. Usage: `exported_bytes [SECONDS] [SEED] [FOLDER OF SEEDS]`.

use flambeau_fuzz::raw;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seeds of the repository.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../export/tests/data");
/// Tokens that have a meaning in a program.
const TOKENS: [&str; 24] = [
    "null",
    "true",
    "-1",
    "9223372036854775807",
    "1e400",
    "NaN",
    "[]",
    "{}",
    "\"\"",
    "{\"as_none\": true}",
    "{\"as_int\": -9223372036854775808}",
    "{\"as_tensor\": {\"name\": \"x\"}}",
    "\"torch.ops.aten.view.default\"",
    "\"torch.ops.higher_order.cond\"",
    "\"torch.ops.higher_order.while_loop\"",
    "\"_operator.getitem\"",
    "Symbol('s0', integer=True)",
    "Pow(Symbol('s0', integer=True), Integer(64))",
    "Mod(Symbol('s0', integer=True), Integer(0))",
    "\"schema_version\": {\"major\": 8, \"minor\": 99}",
    "as_sym_int",
    "as_optional_tensors",
    "as_graph",
    "user_input_mutation",
];
/// A case that takes longer is reported.
const SLOW: Duration = Duration::from_secs(2);

static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A generator of random numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// A range of at most `most` bytes.
    fn range(&mut self, bytes: &[u8], most: usize) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        start..(start + self.below(most)).min(bytes.len())
    }
}

fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            1 => drop(bytes.drain(random.range(&bytes, 40))),
            2 => {
                let copy = bytes[random.range(&bytes, 400)].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            3 => {
                let other = &seeds[random.below(seeds.len())];
                let part = other[random.range(other, 400)].to_vec();
                drop(bytes.splice(random.range(&bytes, 400), part));
            }
            4 => {
                let token = TOKENS[random.below(TOKENS.len())];
                drop(bytes.splice(random.range(&bytes, 24), token.bytes()));
            }
            // A value of the text: from a colon to the next comma.
            5 => {
                let start = bytes[at..].iter().position(|&b| b == b':').map_or(at, |n| at + n + 1);
                let end = bytes[start..].iter().position(|&b| b == b',').map_or(start, |n| start + n);
                drop(bytes.splice(start..end, TOKENS[random.below(TOKENS.len())].bytes()));
            }
            // A name of the text in the place of another one.
            6 => {
                let from = quoted(&bytes, at);
                let name = bytes[from].to_vec();
                let to = quoted(&bytes, random.below(bytes.len() + 1));
                drop(bytes.splice(to, name));
            }
            _ => {
                let number = random.below(1 << 20).to_string();
                let digits = bytes[at..].iter().position(u8::is_ascii_digit).map_or(at, |n| at + n);
                drop(bytes.splice(digits..(digits + 1).min(bytes.len()), number.bytes()));
            }
        }
    }
    bytes
}

/// The first quoted text behind a position.
fn quoted(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let next = |from: usize| bytes[from..].iter().position(|&b| b == b'"').map(|n| from + n);
    match next(at).and_then(|start| Some(start..next(start + 1)? + 1)) {
        Some(range) => range,
        None => at..at,
    }
}

fn seeds(folder: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "pt2" || end == "json"));
    paths.sort();
    paths.iter().map(fs::read).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let seconds: u64 = args.next().map_or(Ok(60), |text| text.parse())?;
    let seed: u64 = args.next().map_or(Ok(1), |text| text.parse())?;
    let folder = args.next().unwrap_or_else(|| SEEDS.to_owned());
    let seeds = seeds(Path::new(&folder))?;
    let file = std::env::temp_dir().join("exported_bytes.failed");
    let (report, path) = (std::panic::take_hook(), file.clone());
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if let Ok(bytes) = CURRENT.lock() {
            eprintln!("the input is in {}: {:?}", path.display(), fs::write(&path, &*bytes));
        }
    }));
    let registry = flambeau_ops::registry();
    // The lowest bit of a seed may be 0, but not all of them.
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (start, mut cases, mut slow) = (Instant::now(), 0_u64, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        let bytes = mutate(&mut random, &seeds);
        if let Ok(mut current) = CURRENT.lock() {
            current.clone_from(&bytes);
        }
        let begin = Instant::now();
        raw::exported(&bytes, &registry);
        if begin.elapsed() > SLOW {
            slow += 1;
            eprintln!(
                "{:?}: {:?}",
                begin.elapsed(),
                fs::write(file.with_extension(slow.to_string()), &bytes)
            );
        }
        cases += 1;
    }
    println!("{cases} cases of seed {seed}, none panicked, {slow} took more than {} s", SLOW.as_secs());
    Ok(())
}
