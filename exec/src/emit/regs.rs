//! Register allocation of one bank: free registers, owners, and registers reserved for results of open constructs.

use flambeau_ir::ValueId;

/// The registers of one bank.
pub(super) struct Bank {
    free: Vec<u32>,
    owner: Vec<Option<ValueId>>,
    reserved: Vec<bool>,
}

impl Bank {
    /// Creates a bank whose first `fixed` registers are never allocated.
    pub(super) fn new(fixed: usize) -> Bank {
        Bank { free: Vec::new(), owner: vec![None; fixed], reserved: vec![true; fixed] }
    }

    /// Returns the number of registers used so far.
    pub(super) fn len(&self) -> u32 {
        self.owner.len() as u32
    }

    /// Allocates a register for a value, or a temporary one if `owner` is `None`.
    pub(super) fn take(&mut self, owner: Option<ValueId>) -> u32 {
        let register = self.free.pop().unwrap_or_else(|| {
            self.owner.push(None);
            self.reserved.push(false);
            self.len() - 1
        });
        self.owner[register as usize] = owner;
        register
    }

    /// Allocates two registers in sequence, and reserves them.
    pub(super) fn take_pair(&mut self) -> u32 {
        self.owner.extend([None; 2]);
        self.reserved.extend([true; 2]);
        self.len() - 2
    }

    /// Frees a temporary register.
    pub(super) fn free_register(&mut self, register: u32) {
        debug_assert!(self.owner[register as usize].is_none() && !self.is_reserved(register));
        self.free.push(register);
    }

    pub(super) fn is_reserved(&self, register: u32) -> bool {
        self.reserved[register as usize]
    }

    /// Reserves a register (or cancels that); returns the previous state.
    pub(super) fn reserve(&mut self, register: u32, reserved: bool) -> bool {
        std::mem::replace(&mut self.reserved[register as usize], reserved)
    }

    pub(super) fn owner(&self, register: u32) -> Option<ValueId> {
        self.owner[register as usize]
    }

    pub(super) fn set_owner(&mut self, register: u32, owner: Option<ValueId>) {
        self.owner[register as usize] = owner;
    }

    /// Allocates a reserved register if it is empty; returns whether it was.
    pub(super) fn take_reserved(&mut self, register: u32, owner: ValueId) -> bool {
        let empty = self.is_reserved(register) && self.owner(register).is_none();
        if empty {
            self.set_owner(register, Some(owner));
        }
        empty
    }

    /// Ends a value's ownership of a register; returns whether the value owned it.
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
