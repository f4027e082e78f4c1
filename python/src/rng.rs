//! Random numbers of programs that run on tensors of PyTorch: they are drawn from PyTorch's default generator, so that
//! `torch.manual_seed` sets them, and a compiled function draws the same numbers as the function of Python. Generators of PyTorch
//! among the arguments of a call are used in the same way.
//!
//! The state moves to the engine of the run when it first draws, and back when Python runs: after the run and before a call of Python
//! within it. Runs that draw nothing cost nothing. Both sides use MT19937; the layout of the state is that of `torch.get_rng_state`.

use flambeau::IValue;
use flambeau::ir::value::Generator;
use flambeau::tensor::Device;
use flambeau::tensor::random::Engine;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::misuse;

/// Bytes of the state: seed, number of words left, a flag and the position (24 bytes), the words as 64-bit integers, three `f64` of a pair
/// of normal numbers with a flag (32 bytes), and an `f32` with a flag (8 bytes).
const STATE: usize = 24 + Engine::WORDS * 8 + 32 + 8;
/// Offset of the number of words left.
const LEFT: usize = 8;
/// Offset of the position of the next word.
const NEXT: usize = 16;
/// Offset of the words.
const WORDS: usize = 24;
/// Offset of the normal number that is left of a pair.
const NORMAL: usize = WORDS + Engine::WORDS * 8 + 8;
/// Offset of its flag.
const NORMAL_IS_VALID: usize = NORMAL + 16;

thread_local! {
    /// The generator of the runs of this thread. It has a state only while a run draws numbers.
    // The seed is used only if the state of PyTorch has another layout.
    static GENERATOR: Generator = Generator::with_source(Device::CPU, flambeau::exec::Host::SEED, || {
        Python::attach(|py| engine_in(py, None))
    });
}

/// Returns a generator that draws from PyTorch's.
pub(crate) fn torch_generator() -> Generator {
    GENERATOR.with(Generator::clone)
}

/// The generators of PyTorch among the arguments of a call, each with the generator that draws from it.
#[derive(Default)]
pub(crate) struct Generators<'py>(Vec<(Generator, Bound<'py, PyAny>)>);

impl<'py> Generators<'py> {
    /// Returns a generator that draws from an object of PyTorch's class `Generator`: the same one for the same object.
    ///
    /// # Errors
    /// Returns an error if the generator is not of the CPU, or the exception of PyTorch.
    pub(crate) fn of_object(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Generator> {
        if let Some((known, _)) = self.0.iter().find(|(_, of_torch)| of_torch.is(object)) {
            return Ok(known.clone());
        }
        let py = object.py();
        let device = object.getattr(intern!(py, "device"))?.str()?;
        if device.to_string_lossy() != "cpu" {
            return Err(misuse(
                py,
                format!("a generator of the device `{device}` was passed; there are only those of the CPU"),
            ));
        }
        let seed = object.call_method0(intern!(py, "initial_seed"))?.extract()?;
        let source = object.clone().unbind();
        let generator = Generator::with_source(Device::CPU, seed, move || {
            Python::attach(|py| engine_in(py, Some(source.bind(py))))
        });
        self.0.push((generator.clone(), object.clone()));
        Ok(generator)
    }

    /// Returns the object of PyTorch from which a generator draws.
    pub(crate) fn object_of(&self, generator: &IValue) -> Option<Bound<'py, PyAny>> {
        let is_it = |own: &Generator| generator.is_same(&IValue::Generator(own.clone()));
        self.0.iter().find(|(own, _)| is_it(own)).map(|(_, of_torch)| of_torch.clone())
    }

    /// Moves the states back to PyTorch.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(crate) fn give_back(&self, py: Python<'_>) -> PyResult<()> {
        self.0.iter().try_for_each(|(own, of_torch)| give_back(py, own, Some(of_torch)))
    }
}

/// Moves the state back to PyTorch, to an object or to its default generator, if the generator drew numbers.
///
/// # Errors
/// The exception of PyTorch.
pub(crate) fn give_back(
    py: Python<'_>,
    generator: &Generator,
    object: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some(engine) = generator.take_engine(Engine::new) else { return Ok(()) };
    let mut bytes = read(py, object)?;
    write_state(&mut bytes, &engine);
    let helper = py.import("flambeau._values")?.getattr("set_torch_rng_state")?;
    helper.call1((PyBytes::new(py, &bytes), object)).map(|_| ())
}

fn read(py: Python<'_>, object: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u8>> {
    py.import("flambeau._values")?.getattr("torch_rng_state")?.call1((object,))?.extract()
}

fn engine_in(py: Python<'_>, object: Option<&Bound<'_, PyAny>>) -> Option<Engine> {
    engine_of(&read(py, object).ok()?)
}

fn engine_of(bytes: &[u8]) -> Option<Engine> {
    if bytes.len() != STATE {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut words = [0; Engine::WORDS];
    for (i, slot) in words.iter_mut().enumerate() {
        *slot = word(WORDS + 8 * i)?;
    }
    // The word count includes one that is drawn only after the next block is computed.
    let next = (Engine::WORDS + 1).checked_sub(usize::try_from(word(LEFT)?).ok()?)?;
    let spare = f64::from_le_bytes(bytes.get(NORMAL..NORMAL + 8)?.try_into().ok()?);
    Engine::from_state(words, next, (word(NORMAL_IS_VALID)? != 0).then_some(spare))
}

fn write_state(bytes: &mut [u8], engine: &Engine) {
    if bytes.len() != STATE {
        return;
    }
    let (words, next, spare) = engine.state();
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    let left = (Engine::WORDS + 1 - next) as u32;
    put(LEFT, &left.to_le_bytes());
    put(NEXT, &(if left == 1 { 0 } else { next as u64 }).to_le_bytes());
    for (i, word) in words.iter().enumerate() {
        put(WORDS + 8 * i, &u64::from(*word).to_le_bytes());
    }
    put(NORMAL, &spare.unwrap_or(0.0).to_le_bytes());
    put(NORMAL_IS_VALID, &u32::from(spare.is_some()).to_le_bytes());
}
