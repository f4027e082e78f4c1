//! Programs: what was loaded, and its entries.

use crate::engine::Engine;
use crate::error::Error;
use crate::session::Session;
use flambeau_archive::LoadedModule;
use flambeau_exec::Host;
use flambeau_frontend::print::{self, Receiver};
use flambeau_ir::module::Function;
use flambeau_ir::schema::Argument;
use flambeau_ir::value::Object;
use flambeau_ir::{CompilationUnit, FunctionSchema, Graph, IValue, Symbol};
use std::sync::Arc;

/// A loaded program.
#[derive(Clone)]
pub struct Program {
    session: Session,
    engine: Arc<Engine>,
    unit: Arc<CompilationUnit>,
    /// A graph read by itself.
    graph: Option<Arc<Graph>>,
    /// The module of an archive.
    module: Option<Object>,
}

/// A function or method of a program that can be called.
#[derive(Clone)]
pub struct Entry {
    session: Session,
    engine: Arc<Engine>,
    name: String,
    schema: Arc<FunctionSchema>,
    graph: Arc<Graph>,
    receiver: Option<Object>,
}

impl Program {
    pub(crate) fn of_graph(session: &Session, graph: Arc<Graph>) -> Program {
        Program::new(session, Arc::new(CompilationUnit::new()), Some(graph), None)
    }

    pub(crate) fn of_unit(session: &Session, unit: CompilationUnit) -> Program {
        Program::new(session, Arc::new(unit), None, None)
    }

    fn new(
        session: &Session,
        unit: Arc<CompilationUnit>,
        graph: Option<Arc<Graph>>,
        module: Option<Object>,
    ) -> Program {
        let engine = Engine::new(session, &unit);
        Program { session: session.clone(), engine, unit, graph, module }
    }

    pub(crate) fn of_module(session: &Session, module: LoadedModule) -> Result<Program, Error> {
        let program = Program::new(session, Arc::clone(&module.unit), None, Some(module.root.clone()));
        for state in &module.pending {
            program.restore(&state.object, state.state.clone())?;
        }
        Ok(program)
    }

    /// Runs the `__setstate__` of an object that restores itself.
    fn restore(&self, object: &Object, state: IValue) -> Result<(), Error> {
        let method = self.unit.method(object.class(), Symbol::new("__setstate__"));
        let method =
            method.ok_or_else(|| Error::misuse(format!("{} has no __setstate__", object.class())))?;
        let args = vec![IValue::Object(object.clone()), state];
        self.engine.run(&method.graph, args, &mut self.session.host())?;
        Ok(())
    }

    /// Functions and classes.
    pub fn unit(&self) -> &Arc<CompilationUnit> {
        &self.unit
    }

    /// The module of an archive.
    pub fn module(&self) -> Option<&Object> {
        self.module.as_ref()
    }

    /// Names that [`Program::entry`] takes, in order of definition.
    pub fn entries(&self) -> Vec<String> {
        if self.graph.is_some() {
            return vec!["forward".to_owned()];
        }
        match &self.module {
            Some(object) => self
                .unit
                .class(object.class())
                .map(|c| c.methods.keys().map(ToString::to_string).collect())
                .unwrap_or_default(),
            None => self.unit.functions().map(|f| f.name.to_string()).filter(|n| !n.contains("__")).collect(),
        }
    }

    /// An entry by name: a function of a source, a method of a module. IR text has one entry, which any name finds.
    ///
    /// # Errors
    /// `X0003` if there is none.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        if let Some(graph) = &self.graph {
            let function = Function::of_graph(Symbol::new(name), Arc::clone(graph));
            return Ok(self.make_entry(name, function.schema, function.graph, None));
        }
        let function = match &self.module {
            Some(object) => self.unit.method(object.class(), Symbol::new(name)),
            None => self.unit.function(Symbol::new(name)),
        };
        let Some(function) = function else {
            let known = self.entries().join(", ");
            return Err(Error::misuse(format!("the program has no entry `{name}`; it has: {known}")));
        };
        let receiver = self.module.clone();
        Ok(self.make_entry(name, Arc::clone(&function.schema), Arc::clone(&function.graph), receiver))
    }

    fn make_entry(
        &self,
        name: &str,
        schema: Arc<FunctionSchema>,
        graph: Arc<Graph>,
        receiver: Option<Object>,
    ) -> Entry {
        Entry {
            session: self.session.clone(),
            engine: Arc::clone(&self.engine),
            name: name.to_owned(),
            schema,
            graph,
            receiver,
        }
    }
}

impl Entry {
    /// The name it was found by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters (a method's receiver first) and returns.
    pub fn schema(&self) -> &FunctionSchema {
        &self.schema
    }

    /// The parameters a caller gives: a method's receiver is not among them.
    pub fn params(&self) -> &[Argument] {
        &self.schema.args[usize::from(self.receiver.is_some())..]
    }

    /// The body as loaded.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Calls it. Several results come as a tuple.
    ///
    /// # Errors
    /// `X0003` for arguments that do not fit, `X0002` for what the program raises or a limit it meets.
    pub fn call(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<IValue, Error> {
        self.call_on(args, kwargs, &mut self.session.host())
    }

    /// Calls it on a given host: with an output, a generator, a cancellation token of the caller's.
    ///
    /// # Errors
    /// As [`Entry::call`].
    pub fn call_on(
        &self,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
        host: &mut Host,
    ) -> Result<IValue, Error> {
        let args = self.bind(args, kwargs)?;
        let mut results = self.engine.run(&self.graph, args, host)?;
        Ok(if results.len() == 1 { results.remove(0) } else { IValue::tuple(results.into_vec()) })
    }

    /// The body as TorchScript source, as PyTorch's `.code` shows it.
    ///
    /// # Errors
    /// `F0120` if the graph holds nodes that source cannot say.
    pub fn code(&self) -> Result<String, Error> {
        let function = Function {
            name: Symbol::new(&self.name),
            schema: self.schema.clone(),
            graph: self.graph.clone(),
        };
        let receiver = if self.receiver.is_some() { Receiver::Bare } else { Receiver::Typed };
        Ok(print::code(self.engine.unit(), &function, receiver)?.text)
    }

    /// The instructions that a call runs, as text.
    ///
    /// # Errors
    /// `X0002` if the graph cannot be compiled.
    pub fn bytecode(&self) -> Result<String, Error> {
        Ok(self.engine.code(&self.graph)?.to_string())
    }

    /// The arguments in order of the parameters, receiver and defaults filled in.
    fn bind(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<Vec<IValue>, Error> {
        let params = self.params();
        if args.len() > params.len() {
            let message =
                format!("{} takes {} arguments but {} were given", self.name, params.len(), args.len());
            return Err(Error::misuse(message));
        }
        let mut bound: Vec<IValue> = self.receiver.iter().cloned().map(IValue::Object).collect();
        for (i, param) in params.iter().enumerate() {
            let named = kwargs.iter().find(|(n, _)| *n == param.name.as_str());
            let value = match (args.get(i), named) {
                (Some(_), Some(_)) => {
                    return Err(Error::misuse(format!("argument `{}` is given twice", param.name)));
                }
                (Some(v), None) => v.clone(),
                (None, Some((_, v))) => v.clone(),
                (None, None) => match &param.default {
                    Some(v) => v.clone(),
                    None => return Err(Error::misuse(format!("argument `{}` is missing", param.name))),
                },
            };
            if !value.fits(param.ty) {
                let message = format!(
                    "argument `{}` must be of type {} but is a {}",
                    param.name,
                    param.ty,
                    value.type_of()
                );
                return Err(Error::misuse(message));
            }
            bound.push(value);
        }
        if let Some((name, _)) = kwargs.iter().find(|(n, _)| !params.iter().any(|p| p.name.as_str() == *n)) {
            return Err(Error::misuse(format!("{} has no parameter `{name}`", self.name)));
        }
        Ok(bound)
    }
}
