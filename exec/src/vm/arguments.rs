//! Where a caller puts the arguments of a run: straight into the registers of its first frame, or into a list.

use super::steps;
use crate::bytecode::Code;
use crate::error::KernelError;
use crate::structural::{SymbolSizes, check_declared};
use flambeau_ir::value::IValue;

/// Takes the arguments of a run, in order.
pub struct Arguments<'a>(Place<'a>);

enum Place<'a> {
    Frame(Registers<'a>),
    List(&'a mut Vec<IValue>),
}

/// The registers of a frame that takes arguments.
struct Registers<'a> {
    code: &'a Code,
    s: &'a mut [u64],
    v: &'a mut [IValue],
    given: usize,
    /// What is wrong with the first argument that does not fit.
    wrong: Option<KernelError>,
    symbols: SymbolSizes,
}

impl<'a> Arguments<'a> {
    /// Into the registers of a frame, whose constants are put there now.
    #[inline(always)]
    pub(super) fn of_frame(code: &'a Code, s: &'a mut [u64], v: &'a mut [IValue]) -> Arguments<'a> {
        // Few are put one by one: a call of the system's copying function costs more.
        match code.scalars[..] {
            [] => {}
            [a] => s[0] = a,
            [a, b] => (s[0], s[1]) = (a, b),
            ref all => s[..all.len()].copy_from_slice(all),
        }
        Arguments(Place::Frame(Registers { code, s, v, given: 0, wrong: None, symbols: Vec::new() }))
    }

    /// At the end of a list.
    pub fn of_list(list: &'a mut Vec<IValue>) -> Arguments<'a> {
        Arguments(Place::List(list))
    }

    /// The next argument.
    #[inline(always)]
    pub fn push(&mut self, value: IValue) {
        match &mut self.0 {
            Place::Frame(registers) => registers.push(value),
            Place::List(list) => list.push(value),
        }
    }

    /// An error if they were too many or too few for the frame, or one does not fit.
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
