//! A monomorphic inline cache: a call speculates that the plan of the last call applies.
//!
//! The arguments are bound to the registers of that plan, and each one is compared with the metadata of the last call while
//! it is bound. So the call moves every argument once, as a call without an executor does. If an argument differs, the
//! registers are cleared and the call falls back to the search for a plan.

use crate::attributes::AttributePath;
use crate::spec::matches_value;
use flambeau_exec::ExecError;
use flambeau_exec::vm::{ArgumentSink, Arguments};
use flambeau_ir::IValue;
use smallvec::SmallVec;

/// The reason why a call did not run the cached plan. Errors are boxed: a result that is large is expensive to move.
pub(crate) enum FallbackReason<E> {
    /// An argument has other metadata.
    Arguments,
    /// The caller's error in binding.
    Bind(Box<E>),
    /// The error of the run.
    Run(Box<ExecError>),
}

impl<E> From<ExecError> for FallbackReason<E> {
    fn from(error: ExecError) -> Self {
        FallbackReason::Run(Box::new(error))
    }
}

/// Compares arguments while they are bound.
struct Matching<'m, 'a> {
    bound: &'m mut Arguments<'a>,
    /// The words of the arguments to come.
    rest: &'m [u64],
    fits: bool,
    /// The objects among the arguments, if attributes are read from them, by their positions.
    objects: Option<SmallVec<[(usize, IValue); 1]>>,
    count: usize,
}

impl ArgumentSink for Matching<'_, '_> {
    #[inline]
    fn push(&mut self, value: IValue) {
        self.fits = self.fits && matches_value(&value, &mut self.rest);
        if !self.fits {
            return;
        }
        if let Some(objects) = &mut self.objects
            && matches!(value, IValue::Object(_))
        {
            objects.push((self.count, value.clone()));
        }
        self.count += 1;
        self.bound.push(value);
    }
}

/// Binds the arguments that `bind` supplies, and the lifted attributes, if they have the metadata in `words`.
pub(crate) fn bind_expected<E>(
    bound: &mut Arguments<'_>,
    words: &[u64],
    attributes: &[AttributePath],
    bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), E>,
) -> Result<(), FallbackReason<E>> {
    let objects = (!attributes.is_empty()).then(SmallVec::new);
    let mut matching = Matching { bound, rest: words, fits: true, objects, count: 0 };
    bind(&mut Arguments::of_sink(&mut matching)).map_err(|error| FallbackReason::Bind(Box::new(error)))?;
    let objects = matching.objects.take().unwrap_or_default();
    for path in attributes {
        let argument = |at| objects.iter().find(|(position, _)| *position == at).map(|(_, object)| object);
        match path.read(argument) {
            Some(value) => matching.push(value),
            None => return Err(FallbackReason::Arguments),
        }
    }
    if matching.fits && matching.rest.is_empty() { Ok(()) } else { Err(FallbackReason::Arguments) }
}
