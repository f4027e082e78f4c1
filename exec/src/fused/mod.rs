//! Fused groups.
use crate::bytecode::Code;
use crate::error::KernelError;
use crate::kernel::Rets;
use flambeau_ir::{Graph, IValue};
use std::sync::{Arc, OnceLock};

pub(crate) struct Group {
    graph: Arc<Graph>,
    code: OnceLock<Arc<Code>>,
}

impl Group {
    pub(crate) fn compile(_graph: &Arc<Graph>) -> Option<Group> {
        None
    }
    pub(crate) fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }
    pub(crate) fn code(&self) -> &OnceLock<Arc<Code>> {
        &self.code
    }
    pub(crate) fn run(&self, _args: &mut [IValue], _rets: &mut Rets) -> Result<bool, KernelError> {
        Ok(false)
    }
}
