//! Destination of a run's arguments: the registers of its first frame, or a list.

use super::steps;
use crate::bytecode::Code;
use crate::error::KernelError;
use crate::structural::{SymbolSizes, check_declared};
use flambeau_ir::value::IValue;

/// Receives the arguments of a run, in order.
pub struct Arguments<'a>(Place<'a>);

enum Place<'a> {
    Frame(Registers<'a>),
    List(&'a mut Vec<IValue>),
}

/// The registers of a frame whose parameters are being bound.
struct Registers<'a> {
    code: &'a Code,
    s: &'a mut [u64],
    v: &'a mut [IValue],
    given: usize,
    /// The error of the first argument that does not fit.
    wrong: Option<KernelError>,
    symbols: SymbolSizes,
}

impl<'a> Arguments<'a> {
    /// Binds the parameters of a frame; also copies its constants.
    #[inline(always)]
    pub(super) fn of_frame(code: &'a Code, s: &'a mut [u64], v: &'a mut [IValue]) -> Arguments<'a> {
        // Small counts are copied individually: a call of `memcpy` costs more.
        match code.scalars[..] {
            [] => {}
            [a] => s[0] = a,
            [a, b] => (s[0], s[1]) = (a, b),
            ref all => s[..all.len()].copy_from_slice(all),
        }
        Arguments(Place::Frame(Registers { code, s, v, given: 0, wrong: None, symbols: Vec::new() }))
    }

    /// Appends the arguments to a list.
    pub fn of_list(list: &'a mut Vec<IValue>) -> Arguments<'a> {
        Arguments(Place::List(list))
    }

    /// Adds the next argument.
    #[inline(always)]
    pub fn push(&mut self, value: IValue) {
        match &mut self.0 {
            Place::Frame(registers) => registers.push(value),
            Place::List(list) => list.push(value),
        }
    }

    /// Checks the number of arguments and returns the first error.
    #[inline(always)]
    pub(super) fn complete(self) -> Result<(), KernelError> {
        match self.0 {
            Place::Frame(registers) => registers.complete(),
            Place::List(_) => Ok(()),
        }
    }
}

impl Registers<'_> {
    #[inline(always)]
    fn push(&mut self, value: IValue) {
        if let Some(&ty) = self.code.declared.get(self.given)
            && let Err(error) = check_declared(&self.code.graph, self.given, &value, ty, &mut self.symbols)
        {
            self.wrong.get_or_insert(error);
        } else if let Some(&param) = self.code.params.get(self.given)
            && let Err(error) = steps::store(param, value, self.s, self.v)
        {
            self.refuse(&error);
        }
        self.given += 1;
    }

    #[cold]
    fn refuse(&mut self, error: &KernelError) {
        let told = || KernelError::input(format!("argument {}: {}", self.given, error.message()));
        self.wrong.get_or_insert_with(told);
    }

    #[inline(always)]
    fn complete(self) -> Result<(), KernelError> {
        match self.wrong {
            None if self.given == self.code.params.len() => Ok(()),
            wrong => Err(wrong.unwrap_or_else(|| miscounted(self.code.params.len(), self.given))),
        }
    }
}

#[cold]
fn miscounted(wanted: usize, found: usize) -> KernelError {
    KernelError::input(format!("expected {wanted} arguments but {found} were given"))
}
