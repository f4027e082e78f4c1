//! Registers of one bank: allocation, who owns one, and which are set aside for the results of an open construct.

use flambeau_ir::ValueId;

/// One bank.
pub(super) struct Bank {
    free: Vec<u32>,
    owner: Vec<Option<ValueId>>,
    reserved: Vec<bool>,
}

impl Bank {
    /// A bank whose first `fixed` registers are never given out.
    pub(super) fn new(fixed: usize) -> Bank {
        Bank { free: Vec::new(), owner: vec![None; fixed], reserved: vec![true; fixed] }
    }

    /// Registers used so far.
    pub(super) fn len(&self) -> u32 {
        self.owner.len() as u32
    }

    /// A register for a value, or (without one) for a moment.
    pub(super) fn take(&mut self, owner: Option<ValueId>) -> u32 {
        let register = self.free.pop().unwrap_or_else(|| {
            self.owner.push(None);
            self.reserved.push(false);
            self.len() - 1
        });
        self.owner[register as usize] = owner;
        register
    }

    /// Gives back a register taken for a moment.
    pub(super) fn give(&mut self, register: u32) {
        debug_assert!(self.owner[register as usize].is_none() && !self.is_reserved(register));
        self.free.push(register);
    }

    pub(super) fn is_reserved(&self, register: u32) -> bool {
        self.reserved[register as usize]
    }

    /// Sets a register aside (or not); says how it was.
    pub(super) fn reserve(&mut self, register: u32, reserved: bool) -> bool {
        std::mem::replace(&mut self.reserved[register as usize], reserved)
    }

    pub(super) fn owner(&self, register: u32) -> Option<ValueId> {
        self.owner[register as usize]
    }

    pub(super) fn set_owner(&mut self, register: u32, owner: Option<ValueId>) {
        self.owner[register as usize] = owner;
    }

    /// Takes a register that is set aside and empty.
    pub(super) fn take_reserved(&mut self, register: u32, owner: ValueId) -> bool {
        let empty = self.is_reserved(register) && self.owner(register).is_none();
        if empty {
            self.set_owner(register, Some(owner));
        }
        empty
    }

    /// Ends a value's hold on its register; says whether it had one.
    pub(super) fn release(&mut self, register: u32, value: ValueId) -> bool {
        if self.owner(register) != Some(value) {
            return false;
        }
        self.set_owner(register, None);
        if !self.is_reserved(register) {
            self.free.push(register);
        }
        true
    }
}
