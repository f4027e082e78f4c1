//! Destination of a run's arguments: the registers of its first frame, a list, or a receiver of the caller.

use super::steps;
use crate::bytecode::Code;
use crate::error::KernelError;
use crate::structural::{SymbolSizes, check_declared};
use flambeau_ir::value::IValue;

/// Receives the arguments of a run, in order.
pub struct Arguments<'a>(Destination<'a>);

enum Destination<'a> {
    Frame(Registers<'a>),
    List(&'a mut Vec<IValue>),
    Sink(&'a mut dyn ArgumentSink),
}

/// Receives the arguments of a run, for a caller that looks at each one before it passes it on.
pub trait ArgumentSink {
    /// Adds the next argument.
    fn push(&mut self, value: IValue);
}

/// The registers of a frame whose parameters are being bound.
struct Registers<'a> {
    code: &'a Code,
    s: &'a mut [u64],
    v: &'a mut [IValue],
    bound: usize,
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
        Arguments(Destination::Frame(Registers { code, s, v, bound: 0, wrong: None, symbols: Vec::new() }))
    }

    /// Appends the arguments to a list.
    pub fn of_list(list: &'a mut Vec<IValue>) -> Arguments<'a> {
        Arguments(Destination::List(list))
    }

    /// Passes the arguments to a receiver.
    pub fn of_sink(sink: &'a mut dyn ArgumentSink) -> Arguments<'a> {
        Arguments(Destination::Sink(sink))
    }

    /// Adds the next argument.
    #[inline(always)]
    pub fn push(&mut self, value: IValue) {
        match &mut self.0 {
            Destination::Frame(registers) => registers.push(value),
            Destination::List(list) => list.push(value),
            Destination::Sink(sink) => sink.push(value),
        }
    }

    /// Adds a copy of the next argument, which is constructed in its register.
    #[inline(always)]
    pub fn push_copy(&mut self, value: &IValue) {
        match &mut self.0 {
            Destination::Frame(registers) => registers.push_copy(value),
            Destination::List(list) => list.push(value.clone()),
            Destination::Sink(sink) => sink.push(value.clone()),
        }
    }

    /// Checks the number of arguments and returns the first error.
    #[inline(always)]
    pub(super) fn complete(self) -> Result<(), KernelError> {
        match self.0 {
            Destination::Frame(registers) => registers.complete(),
            Destination::List(_) | Destination::Sink(_) => Ok(()),
        }
    }
}

impl Registers<'_> {
    #[inline(always)]
    fn push(&mut self, value: IValue) {
        if let Some(&ty) = self.code.declared.get(self.bound)
            && let Err(error) = check_declared(&self.code.graph, self.bound, &value, ty, &mut self.symbols)
        {
            self.wrong.get_or_insert(error);
        } else if let Some(&param) = self.code.params.get(self.bound)
            && let Err(error) = steps::store(param, value, self.s, self.v)
        {
            self.refuse(&error);
        }
        self.bound += 1;
    }

    #[inline(always)]
    fn push_copy(&mut self, value: &IValue) {
        match self.code.params.get(self.bound).and_then(|param| param.register()) {
            Some(register) if self.code.declared.is_empty() => {
                steps::put_copy(value, &mut self.v[register as usize]);
                self.bound += 1;
            }
            _ => self.push(value.clone()),
        }
    }

    #[cold]
    fn refuse(&mut self, error: &KernelError) {
        let input_error = || KernelError::input(format!("argument {}: {}", self.bound, error.message()));
        self.wrong.get_or_insert_with(input_error);
    }

    #[inline(always)]
    fn complete(self) -> Result<(), KernelError> {
        match self.wrong {
            None if self.bound == self.code.params.len() => Ok(()),
            wrong => Err(wrong.unwrap_or_else(|| wrong_argument_count(self.code.params.len(), self.bound))),
        }
    }
}

#[cold]
fn wrong_argument_count(wanted: usize, found: usize) -> KernelError {
    KernelError::input(format!("expected {wanted} arguments but {found} were given"))
}
