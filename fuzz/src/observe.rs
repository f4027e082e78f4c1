//! Runs of a case, and the observable results of a run.
//!
//! Oracles that compare two ways of running a program share these helpers: run both, then compare the two
//! [`Observation`]s with [`same`].
//!
//! ```
//! use flambeau_fuzz::{Campaign, observe};
//! use flambeau_fuzz::observe::Precision;
//!
//! // Checks that a copy of a graph has the same meaning.
//! let campaign = Campaign::new(&flambeau_ops::registry(), 1);
//! for case in (0..20).map(|i| campaign.case(i)) {
//!     let copy = std::sync::Arc::new((*case.graph).clone());
//!     let (want, got) = (observe::by_reference(&case.graph, &case), observe::by_reference(&copy, &case));
//!     observe::same(&want, &got, Precision::Bits).unwrap();
//! }
//! ```

use crate::case::{Case, copies};
use flambeau_exec::{ExecError, Fault, Host, reference};
use flambeau_ir::{Graph, IValue};
use flambeau_tensor::random::Engine;
use flambeau_tensor::{MemoryBudget, Scalar, Tensor, compare};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Loop iterations and function calls that one run may use.
const FUEL: u64 = 100_000;

/// Bytes that the tensors of one run may hold at a time. Fuel does not count the elements
/// that operators compute, so this also bounds the work of a loop over growing tensors before a limit ends it: about 10^9
/// elements.
const MEMORY: usize = 8 << 20;

/// The reason why a run ended without results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// The party that caused the error: the program, a limit or the implementation.
    pub fault: Fault,
    /// Python's class of the error.
    pub class: String,
    /// The first line of the message.
    pub message: String,
}

impl From<ExecError> for RunFailure {
    fn from(error: ExecError) -> RunFailure {
        let message = error.message.lines().next().unwrap_or_default().to_owned();
        RunFailure { fault: error.fault, class: error.class, message }
    }
}

impl std::fmt::Display for RunFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

/// The observable results of a run.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The results, or the failure.
    pub end: Result<Vec<IValue>, RunFailure>,
    /// The arguments after the run. These and the results are copies that share memory with each other as the originals
    /// do.
    pub inputs: Vec<IValue>,
    /// Text printed by the program.
    pub printed: String,
    /// The next number of the host's random generator.
    pub random: u64,
}

impl Observation {
    /// Returns whether a limit of fuel, memory or time ended the run.
    pub fn reached_limit(&self) -> bool {
        self.end.as_ref().is_err_and(|f| f.fault == Fault::Limit)
    }
}

/// Returns a host with bounded fuel and memory and the oracles' seed, which discards prints.
pub fn host() -> Host {
    let mut host = Host::quiet();
    host.set_fuel(FUEL).set_budget(Some(MemoryBudget::new(MEMORY)));
    crate::seeded::seed(&mut host);
    host
}

/// A buffer for prints that can be read later.
#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().map_err(|_| std::io::Error::other("poisoned"))?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a closure on fresh arguments of a case and records the observation.
pub fn run(
    case: &Case,
    run: impl FnOnce(Vec<IValue>, &mut Host) -> Result<Vec<IValue>, ExecError>,
) -> Observation {
    run_on(case.fresh_inputs(), run)
}

/// Runs a closure on the given arguments, which may share memory with constants of the program, and records the
/// observation.
pub fn run_on(
    inputs: Vec<IValue>,
    run: impl FnOnce(Vec<IValue>, &mut Host) -> Result<Vec<IValue>, ExecError>,
) -> Observation {
    let (mut host, printed) = (host(), OutputBuffer::default());
    host.set_stdout(printed.clone());
    let end = run(inputs.clone(), &mut host);
    // Later runs of the same machine may change the values of this run, so they are copied.
    let results = end.as_ref().map_or(0, Vec::len);
    let mut all = end.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
    all.extend(inputs);
    let mut all = copies(&all);
    let inputs = all.split_off(results);
    let printed = printed.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Observation {
        end: end.map(|_| all).map_err(RunFailure::from),
        inputs,
        printed: printed.unwrap_or_default(),
        random: host.rng().fork().with_engine(Engine::new, Engine::bits64),
    }
}

/// Runs a graph on the reference evaluator, with the functions and arguments of a case.
pub fn by_reference(graph: &Arc<Graph>, case: &Case) -> Observation {
    run(case, |inputs, host| reference::run(graph, inputs, &*case.unit, host))
}

/// Required agreement of two runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// Equal bits of every element; all NaN count as equal.
    Bits,
    /// Floating-point numbers may differ by this, relative to `1 + |x|`; all else is exact.
    Within(f64),
}

/// Compares two runs: results, arguments after the run, which of them share storages, prints, and the random
/// generator's state; or the class of the error and the first line of its message.
///
/// # Errors
/// The first difference.
pub fn same(want: &Observation, got: &Observation, precision: Precision) -> Result<(), String> {
    match (&want.end, &got.end) {
        (Ok(x), Ok(y)) => all_same("result", x, y, precision)?,
        (Err(x), Err(y)) if x == y => {}
        (Err(x), Err(y)) => return Err(format!("errors differ: `{x}` and `{y}`")),
        (Ok(_), Err(e)) => return Err(format!("only the second run fails: {e}")),
        (Err(e), Ok(_)) => return Err(format!("only the first run fails: {e}")),
    }
    all_same("input", &want.inputs, &got.inputs, precision)?;
    if !same_text(&want.printed, &got.printed, precision) {
        return Err(format!("prints differ: {:?} and {:?}", want.printed, got.printed));
    }
    if want.random != got.random {
        return Err("the states of the random generator differ".into());
    }
    let (x, y) = (sharing(want), sharing(got));
    if x != y {
        return Err(format!("results and inputs share storages as {x:?} and as {y:?}"));
    }
    Ok(())
}

/// Whether printed texts are equal, apart from rounding of the numbers in them. Tensors print with four decimals.
fn same_text(x: &str, y: &str, precision: Precision) -> bool {
    const LAST: f64 = 1.1e-4;
    let same_word = |(x, y): (&Word<'_>, &Word<'_>)| match (x, y) {
        (Word::Number(x), Word::Number(y)) => close(*x, *y, precision) || (x - y).abs() <= LAST,
        _ => x == y,
    };
    if x == y || matches!(precision, Precision::Bits) {
        return x == y;
    }
    let (x, y) = (printed_words(x), printed_words(y));
    x.len() == y.len() && x.iter().zip(&y).all(same_word)
}

/// A word of a printed text.
#[derive(PartialEq)]
enum Word<'a> {
    Number(f64),
    Text(&'a str),
}

/// Returns the words of a printed text. The numbers of a tensor that is printed with a scale, as in `1e-06 *`, are multiplied by
/// it: rounding can change the scale.
fn printed_words(text: &str) -> Vec<Word<'_>> {
    let mut words = text.split_whitespace().peekable();
    let (mut found, mut scale) = (Vec::new(), 1.0);
    while let Some(word) = words.next() {
        match word.parse::<f64>() {
            Ok(number) if words.next_if_eq(&"*").is_some() => scale = number,
            Ok(number) => found.push(Word::Number(number * scale)),
            Err(_) => {
                scale = 1.0;
                found.push(Word::Text(word));
            }
        }
    }
    found
}

fn all_same(what: &str, x: &[IValue], y: &[IValue], precision: Precision) -> Result<(), String> {
    if x.len() != y.len() {
        return Err(format!("{} {what}s and {}", x.len(), y.len()));
    }
    x.iter()
        .zip(y)
        .enumerate()
        .try_for_each(|(i, (x, y))| same_value(x, y, precision).map_err(|why| format!("{what} {i}: {why}")))
}

/// Returns, for each tensor among the results and arguments, the index of the first one with the same storage.
fn sharing(seen: &Observation) -> Vec<usize> {
    let mut storages: Vec<(usize, usize)> = Vec::new();
    let mut first = Vec::new();
    for value in seen.end.iter().flatten().chain(&seen.inputs) {
        value.visit_tensors(|tensor| {
            let (here, storage) = (first.len(), tensor.storage());
            let known = storages.iter().find(|&&(address, _)| address == storage.address());
            match known.filter(|_| storage.nbytes() > 0) {
                Some(&(_, at)) => first.push(at),
                None => {
                    storages.push((storage.address(), here));
                    first.push(here);
                }
            }
        });
    }
    first
}

/// Compares two values, including their elements.
///
/// # Errors
/// The first difference.
pub fn same_value(a: &IValue, b: &IValue, precision: Precision) -> Result<(), String> {
    // Generated values may be nested deep, so the pairs still to be compared are on an explicit stack.
    let mut open = vec![(a.clone(), b.clone())];
    while let Some((a, b)) = open.pop() {
        match (&a, &b) {
            (IValue::Tensor(x), IValue::Tensor(y)) => same_tensor(x, y, precision)?,
            (IValue::Float(x), IValue::Float(y)) if close(*x, *y, precision) => {}
            (IValue::Complex(x), IValue::Complex(y))
                if close(x.re, y.re, precision) && close(x.im, y.im, precision) => {}
            (IValue::List(_) | IValue::Dict(_) | IValue::Tuple(_), _) if a.tag() == b.tag() => {
                let (x, y) = (a.sub_values(), b.sub_values());
                if x.len() != y.len() {
                    return Err(format!("{a} and {b}"));
                }
                open.extend(x.into_iter().zip(y).rev());
            }
            (IValue::Float(_) | IValue::Complex(_), _) => return Err(format!("{a} and {b}")),
            (IValue::Object(x), IValue::Object(y)) if x.class() == y.class() => {
                open.extend(a.sub_values().into_iter().zip(b.sub_values()).rev());
            }
            (IValue::Future(_), IValue::Future(_)) => {
                open.extend(a.sub_values().into_iter().zip(b.sub_values()).rev());
            }
            _ if a.equals(&b).unwrap_or(false) => {}
            _ => return Err(format!("{a} and {b}")),
        }
    }
    Ok(())
}

fn same_tensor(x: &Tensor, y: &Tensor, precision: Precision) -> Result<(), String> {
    let facts = |t: &Tensor| format!("{:?}{:?}", t.dtype(), t.sizes());
    if x.dtype() != y.dtype() || x.sizes() != y.sizes() {
        return Err(format!("{} and {}", facts(x), facts(y)));
    }
    if x.requires_grad() != y.requires_grad() {
        return Err("one requires a gradient".into());
    }
    let equal = match precision {
        Precision::Bits => bits_equal(x, y),
        Precision::Within(tolerance) => compare::close(x, y, tolerance, tolerance),
    };
    match equal {
        Ok(true) => Ok(()),
        Ok(false) => {
            let (x, y) = (IValue::Tensor(x.clone()), IValue::Tensor(y.clone()));
            Err(format!("tensors differ:\n{x}\nand\n{y}"))
        }
        Err(why) => Err(format!("{}: {why}", facts(x))),
    }
}

/// Returns whether all elements have the same bits; all NaN count as equal.
fn bits_equal(x: &Tensor, y: &Tensor) -> Result<bool, flambeau_tensor::TensorError> {
    if compare::bitwise_equal(x, y)? {
        return Ok(true);
    }
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    let pairs = x.to_scalars()?.into_iter().zip(y.to_scalars()?);
    Ok(pairs.into_iter().all(|pair| match pair {
        (Scalar::Float(x), Scalar::Float(y)) => same(x, y),
        (Scalar::Complex(x), Scalar::Complex(y)) => same(x.re, y.re) && same(x.im, y.im),
        (Scalar::Int(x), Scalar::Int(y)) => x == y,
        (Scalar::Bool(x), Scalar::Bool(y)) => x == y,
        _ => false,
    }))
}

fn close(x: f64, y: f64, precision: Precision) -> bool {
    match precision {
        _ if x.is_nan() || y.is_nan() => x.is_nan() && y.is_nan(),
        Precision::Bits => x.to_bits() == y.to_bits(),
        Precision::Within(tolerance) => x == y || (x - y).abs() <= tolerance * (1.0 + y.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_numbers_may_be_rounded_where_results_may() {
        let x = "value  107.9397  148.0350\n[ CPUFloatType{2} ]\n";
        let y = x.replace("107.9397", "107.9398");
        let (zeros, scaled) = ("value  0  0\n[ F ]\n", "value 1e-06 *\n-0.0825  0.5662\n[ F ]\n");
        assert!(same_text(zeros, scaled, Precision::Within(1e-4)));
        assert!(!same_text(zeros, &scaled.replace("-06", "02"), Precision::Within(1e-4)));
        let within = Precision::Within(1e-4);
        assert!(same_text(x, &y, within) && !same_text(x, &y, Precision::Bits));
        assert!(!same_text(x, &y.replace("148.0350", "149.0350"), within));
        assert!(!same_text(x, &y.replace("value", "other"), within));
    }
}
