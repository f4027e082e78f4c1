//! Wraps functions as methods: a program without a module gets an empty module, so that it can be saved.

use crate::error::Error;
use crate::program::Program;
use flambeau_ir::module::{Class, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::value::Object;
use flambeau_ir::{Symbol, Type};
use std::sync::Arc;

/// Class of the module in which PyTorch saves functions.
const PLACEHOLDER: &str = "__torch__.PlaceholderModule";

impl Program {
    /// Returns a program with a module whose methods are entries of this program, given as pairs of entry name and
    /// method name. Functions that they call remain functions. An archive of a single function names it `forward`.
    ///
    /// # Errors
    /// `X0003` for programs that already have a module, unknown entries, or a parameter named `self`.
    pub fn to_module(&self, methods: &[(&str, &str)]) -> Result<Program, Error> {
        if self.module().is_some() {
            return Err(Error::misuse("the program already has a module"));
        }
        let ty = Type::class(Symbol::new(PLACEHOLDER), 0);
        let receiver = Symbol::new("self");
        let mut unit = (**self.unit()).clone();
        let mut class = Class::new(ty, true);
        for (entry, method) in methods {
            let entry = self.entry(entry)?;
            let mut schema = entry.schema().clone();
            if schema.args.iter().any(|arg| arg.name == receiver) {
                return Err(Error::misuse(format!("`{}` has a parameter named `self`", entry.name())));
            }
            let mut graph = (**entry.graph()).clone();
            let root = graph.root();
            let mut edit = graph.edit();
            let input = edit.insert_block_input(root, 0, ty);
            edit.set_name(input, "self");
            schema.args.insert(0, Argument::new(receiver, ty));
            let name = Symbol::new(&format!("{PLACEHOLDER}.{method}"));
            unit.define_function(Function { name, schema: Arc::new(schema), graph: Arc::new(graph) });
            class.methods.insert(Symbol::new(method), name);
        }
        unit.define_class(class);
        self.with_unit(unit, Object::new(ty, Vec::new()))
    }
}
