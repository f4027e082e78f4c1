//! Statements of a function.
//!
//! An explicit stack of [`PrintStep`]s (the agenda) drives the printer, so nested blocks do not recurse. Each value has a
//! text: the name of a variable, or the expression of a node that is nested in its user. An expression that is too long
//! is assigned to a variable before its use, together with all pending expressions that are evaluated before it.

use std::rc::Rc;
use std::sync::Arc;

use flambeau_ir::attr::names as attrs;
use flambeau_ir::module::Function;
use flambeau_ir::types::{TypeKind, unify};
use flambeau_ir::{Attr, BlockId, Diagnostic, Fault, Graph, NodeId, Prim, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::inline::{self, Inline};
use super::marks;
use super::names::is_identifier;
use super::{File, Printer, ReceiverForm, Res, unprintable};

/// Width, indentation included, from which an expression is assigned to a variable.
const MAX_INLINE_WIDTH: usize = 40;

/// A pending step of the printer.
enum PrintStep {
    /// Prints a node and the nodes after it in its block.
    Nodes(NodeId),
    /// Prints the head of an indented block, which extends to the next [`PrintStep::Close`].
    Open(String),
    /// Assigns the right values to the left variables in one statement.
    Assign(Vec<ValueId>, Vec<ValueId>),
    /// Assigns one variable with a type annotation, because its type cannot be inferred from the value.
    AssignTyped(ValueId, ValueId),
    /// Ends an indented block.
    Close,
    /// Ends a nested function and prints the node that runs it as a task.
    Task(NodeId, String),
}

/// A graph being printed: that of the function, or of a task in it.
struct Layer<'g> {
    graph: &'g Graph,
    inline: Inline,
    texts: HashMap<ValueId, Rc<str>, FxBuildHasher>,
    /// Nested expressions that are not written yet, in execution order.
    pending: Vec<ValueId>,
}

/// State of the printer for one function.
pub(super) struct Body<'p, 'u, 'g> {
    pub(super) printer: &'p mut Printer<'u>,
    pub(super) file: &'p mut File,
    layers: Vec<Layer<'g>>,
    agenda: Vec<PrintStep>,
    level: usize,
    /// Number of lines written, by which empty blocks are found.
    lines: usize,
    /// For each open indented block, the number of lines at its start.
    open: Vec<usize>,
    /// Bytes of indentation written.
    indentation: usize,
}

/// Maximum bytes of indentation of a function. It grows with the square of the nesting.
const MAX_INDENTATION: usize = 1 << 28;

fn too_deep() -> Box<Diagnostic> {
    let text = format!(
        "blocks are nested so deep that the text would have more than {MAX_INDENTATION} bytes of indentation"
    );
    Box::new(Diagnostic::new(Fault::Limit, "T002", text))
}

impl Printer<'_> {
    /// Appends a function at an indentation level.
    pub(super) fn function(
        &mut self,
        file: &mut File,
        function: &Function,
        receiver: ReceiverForm,
        level: usize,
    ) -> Res<()> {
        let graph = prepared(&function.graph, 0)?;
        file.names.begin_function();
        let name = function.name.as_str();
        let name = name.rsplit_once('.').map_or(name, |(_, last)| last);
        let mut head = format!("{}def {name}(", "  ".repeat(level));
        let mut parameters = Vec::with_capacity(function.schema.args.len());
        for (i, arg) in function.schema.args.iter().enumerate() {
            let name = file.names.for_value(Some(arg.name.as_str()));
            head.push_str(if i == 0 { "" } else { ",\n    " });
            head.push_str(&name);
            if i > 0 || receiver == ReceiverForm::Typed {
                head.push_str(": ");
                head.push_str(&self.type_source(arg.ty));
            }
            if let Some(default) = &arg.default {
                head.push('=');
                head.push_str(&self.constant(default)?);
            }
            parameters.push(name);
        }
        let is_empty = graph.outputs().len() == 0;
        let result =
            if is_empty { "NoneType".to_owned() } else { self.type_source(function.schema.return_type()) };
        file.text.push_str(&format!("{head}) -> {result}:\n"));
        let mut body = Body {
            printer: self,
            file,
            layers: Vec::new(),
            agenda: Vec::new(),
            level,
            lines: 0,
            open: Vec::new(),
            indentation: 0,
        };
        let texts = graph.inputs().zip(parameters).map(|(v, name)| (v, Rc::from(name))).collect();
        body.begin(&graph, texts)?;
        body.run()
    }
}

/// Tasks in tasks deeper than this are not printed.
const MAX_TASKS: usize = 100;

/// Rewrites loops that count their trips and have a condition, which have no source form, in a graph and the bodies of
/// its tasks. `depth` is the number of tasks around the graph.
fn prepared(graph: &Arc<Graph>, depth: usize) -> Res<Arc<Graph>> {
    if depth > MAX_TASKS {
        return Err(unprintable("a task in so many tasks"));
    }
    let mut bodies = Vec::new();
    for node in graph.nodes_deep().filter(|&n| matches!(graph.prim(n), Some(Prim::Fork | Prim::Awaitable))) {
        if let Some(Attr::Graph(body)) = graph.attr(node, attrs::subgraph()) {
            let rewritten = prepared(body, depth + 1)?;
            if !Arc::ptr_eq(body, &rewritten) {
                bodies.push((node, rewritten));
            }
        }
    }
    let has_mixed = crate::ssa::has_mixed_loops(graph);
    if bodies.is_empty() && !has_mixed {
        return Ok(Arc::clone(graph));
    }
    let mut graph = (**graph).clone();
    for (node, body) in bodies {
        graph.edit().set_attr(node, attrs::subgraph(), Attr::Graph(body));
    }
    if has_mixed {
        crate::ssa::count_in_body(&mut graph);
    }
    Ok(Arc::new(graph))
}

/// The loop statements of the language.
enum LoopKind {
    For,
    While,
}

fn loop_kind(g: &Graph, node: NodeId) -> LoopKind {
    let truth = |v| g.constant(v).and_then(|c| c.as_bool()) == Some(true);
    let body = g.block(node, 0);
    let always = truth(g.operand(node, 1)) && g.block_outputs(body).next().is_some_and(truth);
    let unlimited = g.constant(g.operand(node, 0)).and_then(|c| c.as_int()) == Some(i64::MAX);
    let counted = g.block_inputs(body).next().is_some_and(|trip| g.use_count(trip) > 0);
    if always && (!unlimited || counted) { LoopKind::For } else { LoopKind::While }
}

impl<'g> Body<'_, '_, 'g> {
    // --- texts -----------------------------------------------------------------------------------------------------

    fn layer(&self) -> &Layer<'g> {
        self.layers.last().expect("invariant: a body has a layer while it is written")
    }

    pub(super) fn graph(&self) -> &'g Graph {
        self.layer().graph
    }

    /// Returns the text of a value.
    pub(super) fn text_of(&self, value: ValueId) -> Res<Rc<str>> {
        match self.layer().texts.get(&value) {
            Some(text) => Ok(Rc::clone(text)),
            None => {
                Err(unprintable(&format!("a use of %{} before its definition", self.graph().name(value))))
            }
        }
    }

    fn set_text(&mut self, value: ValueId, text: Rc<str>) {
        if let Some(layer) = self.layers.last_mut() {
            layer.texts.insert(value, text);
        }
    }

    /// Assigns variable names to values.
    fn name_values(&mut self, values: &[ValueId]) -> Vec<Rc<str>> {
        let g = self.graph();
        let mut names = Vec::with_capacity(values.len());
        for &value in values {
            let symbol = g.name(value).symbol();
            let name: Rc<str> = self.file.names.for_value(symbol.map(|s| s.as_str())).into();
            self.set_text(value, Rc::clone(&name));
            names.push(name);
        }
        names
    }

    /// Adds a note to an error that names the node it is about.
    pub(super) fn with_node_note(&self, node: NodeId, mut problem: Box<Diagnostic>) -> Box<Diagnostic> {
        let name = self.graph().op_name(node);
        problem.notes.push(format!("in the node `{name}`"));
        problem
    }

    fn is_long(&self, text: &str) -> bool {
        marks::width(text) + 2 * self.level >= MAX_INLINE_WIDTH
    }

    fn line(&mut self, text: &str) {
        self.lines += 1;
        let out = &mut self.file.text;
        for _ in 0..self.level {
            out.push_str("  ");
        }
        self.indentation += 2 * self.level;
        self.file.marks.write(out, text);
        out.push('\n');
    }

    fn texts(&self, values: &[ValueId]) -> Res<String> {
        let texts = values.iter().map(|&v| self.text_of(v)).collect::<Res<Vec<_>>>()?;
        Ok(texts.join(", "))
    }

    // --- graphs and blocks -----------------------------------------------------------------------------------------

    /// Starts the body of a function: assigns long constants to variables and schedules the statements.
    fn begin(&mut self, graph: &'g Graph, texts: HashMap<ValueId, Rc<str>, FxBuildHasher>) -> Res<()> {
        self.layers.push(Layer { graph, inline: inline::find(graph), texts, pending: Vec::new() });
        self.indent();
        for step in graph.walk(graph.root()) {
            match step {
                WalkStep::Node(node) => self.constants(node)?,
                WalkStep::Leave(block) => self.constants(graph.ret(block))?,
                WalkStep::Enter(_) | WalkStep::Done(_) => {}
            }
        }
        self.agenda.extend([PrintStep::Close, PrintStep::Nodes(first(graph, graph.root()))]);
        Ok(())
    }

    /// Sets the texts of the constants that a node uses, if they are used for the first time.
    fn constants(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        for value in g.operands(node) {
            let def = g.def(value);
            if !g.is_prim(def, Prim::Constant) || self.layer().texts.contains_key(&value) {
                continue;
            }
            let text = self.expression(def)?;
            if self.is_long(&text) {
                let name = self.name_values(&[value]);
                self.line(&format!("{} = {text}", name[0]));
            } else {
                self.set_text(value, text.into());
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Res<()> {
        while let Some(step) = self.agenda.pop() {
            if self.indentation > MAX_INDENTATION {
                return Err(too_deep());
            }
            match step {
                PrintStep::Nodes(node) => {
                    if let Some(next) = self.graph().next(node) {
                        self.agenda.push(PrintStep::Nodes(next));
                    }
                    self.node(node)?;
                }
                PrintStep::Assign(to, from) => self.assign(&to, &from)?,
                PrintStep::AssignTyped(to, from) => {
                    let (name, text) = (self.text_of(to)?, self.text_of(from)?);
                    let ty = self.printer.type_source(self.graph().ty(to));
                    self.line(&format!("{name} : {ty} = {text}"));
                }
                PrintStep::Open(head) => {
                    self.line(&head);
                    self.indent();
                }
                PrintStep::Close => self.dedent(),
                PrintStep::Task(node, name) => {
                    self.layers.pop();
                    let kind = if self.graph().is_prim(node, Prim::Fork) { "fork" } else { "awaitable" };
                    self.define(node, &format!("{kind}({name})"));
                }
            }
        }
        self.layers.pop();
        Ok(())
    }

    fn indent(&mut self) {
        self.open.push(self.lines);
        self.level += 1;
    }

    /// Ends an indented block; writes `pass` if it is empty.
    fn dedent(&mut self) {
        if self.open.pop() == Some(self.lines) {
            self.line("pass");
        }
        self.level = self.level.saturating_sub(1);
    }

    // --- statements ------------------------------------------------------------------------------------------------

    fn node(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let prim = g.prim(node);
        if prim == Some(Prim::Constant) {
            return Ok(());
        }
        self.split_long(node)?;
        match prim {
            // The next step assigns the outputs of the block, nested expressions included.
            Some(Prim::Return) if g.owner(g.parent(node)).is_some() => Ok(()),
            Some(Prim::Return) => self.return_statement(node),
            Some(Prim::If) => self.if_statement(node),
            Some(Prim::Loop) => self.loop_statement(node),
            Some(Prim::TupleUnpack | Prim::ListUnpack) => self.unpack(node),
            Some(Prim::ModuleContainerIndex) => self.container_item(node),
            Some(Prim::SetAttr) => self.set_attribute(node),
            Some(Prim::Fork | Prim::Awaitable) => self.task(node),
            Some(Prim::Enter) => self.enter(node),
            Some(Prim::Exit) => {
                self.dedent();
                Ok(())
            }
            _ => {
                let text = self.expression(node)?;
                if self.layer().inline.contains(&node) {
                    let result = g.result(node, 0);
                    self.set_text(result, text.into());
                    if let Some(layer) = self.layers.last_mut() {
                        layer.pending.push(result);
                    }
                } else {
                    self.define(node, &text);
                }
                Ok(())
            }
        }
    }

    /// Writes `x, y = text`, or only `text` if the node has no results.
    fn define(&mut self, node: NodeId, text: &str) {
        let results: Vec<ValueId> = self.graph().results(node).collect();
        let names = self.name_values(&results);
        if names.is_empty() {
            self.line(text);
        } else {
            self.line(&format!("{} = {text}", names.join(", ")));
        }
    }

    /// Returns the operands nested in the expression of a node and removes them from the pending expressions, because
    /// they are written with the node.
    fn take_nested(&mut self, node: NodeId) -> Vec<ValueId> {
        let g = self.graph();
        let Some(layer) = self.layers.last_mut() else { return Vec::new() };
        let is_nested =
            |v: &ValueId| !g.is_prim(g.def(*v), Prim::Constant) && layer.inline.contains(&g.def(*v));
        let nested: Vec<ValueId> = g.operands(node).filter(is_nested).collect();
        layer.pending.truncate(layer.pending.len().saturating_sub(nested.len()));
        nested
    }

    /// Assigns long operands to variables, together with all pending expressions that run before them.
    fn split_long(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let nested = self.take_nested(node);
        let mut split = 0;
        for (i, &value) in nested.iter().enumerate() {
            if self.is_long(&self.text_of(value)?) {
                split = i + 1;
            }
        }
        let Some(layer) = self.layers.last_mut().filter(|_| split > 0) else { return Ok(()) };
        let mut first = std::mem::take(&mut layer.pending);
        first.extend_from_slice(&nested[..split]);
        // From here on these values are variables and no longer nested expressions.
        for &value in &first {
            layer.inline.remove(&g.def(value));
        }
        for value in first {
            let text = self.text_of(value)?;
            self.define(g.def(value), &text);
        }
        Ok(())
    }

    fn assign(&mut self, to: &[ValueId], from: &[ValueId]) -> Res<()> {
        let text = format!("{} = {}", self.texts(to)?, self.texts(from)?);
        self.line(&text);
        Ok(())
    }

    /// Writes the initial value of a loop variable: `x: T = value`, without the type if it is the type of the value.
    fn assign_start(&mut self, to: ValueId, from: ValueId) -> Res<()> {
        let g = self.graph();
        let (name, text) = (self.text_of(to)?, self.text_of(from)?);
        let ty = g.ty(to);
        let line = if ty == g.ty(from) {
            format!("{name} = {text}")
        } else {
            format!("{name}: {} = {text}", self.printer.type_source(ty))
        };
        self.line(&line);
        Ok(())
    }

    fn return_statement(&mut self, node: NodeId) -> Res<()> {
        let values: Vec<ValueId> = self.graph().operands(node).collect();
        let text = match self.texts(&values)? {
            none if none.is_empty() => "None".to_owned(),
            some => some,
        };
        self.line(&format!("return {text}"));
        Ok(())
    }

    fn if_statement(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let results: Vec<ValueId> = g.results(node).collect();
        self.name_values(&results);
        let cond = self.text_of(g.operand(node, 0))?;
        let heads = ["else:".to_owned(), format!("if {cond}:")];
        let sides = [g.block(node, 0), g.block(node, 1)].map(|b| g.block_outputs(b).collect::<Vec<_>>());
        // A type that the compiler would not infer from both branches is annotated in the first one. So is an optional
        // or union type, as in PyTorch, if the node has one result.
        let is_typed = |i: usize| {
            let ([a, b], ty) = ([g.ty(sides[0][i]), g.ty(sides[1][i])], g.ty(results[i]));
            let is_choice = matches!(ty.kind(), TypeKind::Optional(_) | TypeKind::Union(_));
            (is_choice && results.len() == 1) || unify(a, b, false, None, self.printer.unit) != Some(ty)
        };
        let all: Vec<usize> = (0..results.len()).collect();
        let (typed, untyped): (Vec<usize>, Vec<usize>) = all.iter().copied().partition(|&i| is_typed(i));
        // The agenda is a stack, so steps are pushed in reverse.
        for (side, head) in [1, 0].into_iter().zip(heads) {
            let (typed, untyped) = if side == 0 { (&typed[..], &untyped) } else { (&[][..], &all) };
            self.agenda.push(PrintStep::Close);
            self.agenda
                .extend(typed.iter().rev().map(|&i| PrintStep::AssignTyped(results[i], sides[side][i])));
            if !untyped.is_empty() {
                let pick = |values: &[ValueId]| untyped.iter().map(|&i| values[i]).collect();
                self.agenda.push(PrintStep::Assign(pick(&results), pick(&sides[side])));
            }
            self.agenda.push(PrintStep::Nodes(first(g, g.block(node, side))));
            self.agenda.push(PrintStep::Open(head));
        }
        Ok(())
    }

    fn loop_statement(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let body = g.block(node, 0);
        let results: Vec<ValueId> = g.results(node).collect();
        let inputs: Vec<ValueId> = g.block_inputs(body).collect();
        // A carried value is one variable before, in and after the loop.
        let names = self.name_values(&results);
        for ((&result, &input), (name, start)) in
            results.iter().zip(&inputs[1..]).zip(names.iter().zip(g.operands(node).skip(2)))
        {
            self.set_text(input, Rc::clone(name));
            self.assign_start(result, start)?;
        }
        let trip = self.name_values(&inputs[..1])[0].clone();
        let mut outputs: Vec<ValueId> = g.block_outputs(body).collect();
        let mut targets = inputs;
        let head = match loop_kind(g, node) {
            LoopKind::For => {
                outputs.remove(0);
                targets.remove(0);
                format!("for {trip} in range({}):", self.text_of(g.operand(node, 0))?)
            }
            // The iteration number is not read, so its variable holds the condition.
            LoopKind::While => {
                let start = self.text_of(g.operand(node, 1))?;
                self.line(&format!("{trip} = {start}"));
                format!("while {trip}:")
            }
        };
        self.agenda.push(PrintStep::Close);
        if !targets.is_empty() {
            self.agenda.push(PrintStep::Assign(targets, outputs));
        }
        self.agenda.push(PrintStep::Nodes(first(g, body)));
        self.agenda.push(PrintStep::Open(head));
        Ok(())
    }

    /// Writes `x : T = container[key]`: the annotation gives the module's type at this use.
    fn container_item(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let (container, key) = (self.text_of(g.operand(node, 0))?, self.text_of(g.operand(node, 1))?);
        let result = g.result(node, 0);
        let name = self.name_values(&[result])[0].clone();
        let ty = self.printer.type_source(g.ty(result));
        self.line(&format!("{name} : {ty} = {container}[{key}]"));
        Ok(())
    }

    /// Writes `a, b, = tuple`: the trailing comma makes a single target an unpacking too.
    fn unpack(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let results: Vec<ValueId> = g.results(node).collect();
        let tuple = self.text_of(g.operand(node, 0))?;
        let names = self.name_values(&results);
        if names.is_empty() {
            self.line(&tuple);
        } else {
            self.line(&format!("{}, = {tuple}", names.join(", ")));
        }
        Ok(())
    }

    fn set_attribute(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let (object, value) = (self.text_of(g.operand(node, 0))?, self.text_of(g.operand(node, 1))?);
        let name = g.attr(node, attrs::name()).and_then(|a| a.as_str()).unwrap_or_default();
        if !is_identifier(name) {
            return Err(unprintable(&format!("setting the attribute `{name}`")));
        }
        self.line(&format!("{object}.{name} = {value}"));
        Ok(())
    }

    fn enter(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let mut head = format!("with {}", self.text_of(g.operand(node, 0))?);
        let result = g.result(node, 0);
        if g.use_count(result) > 0 {
            let name = self.name_values(&[result]);
            head.push_str(&format!(" as {}", name[0]));
        }
        head.push(':');
        self.line(&head);
        self.indent();
        Ok(())
    }

    /// Writes the function of a task, which can read the variables around it, and then the task.
    fn task(&mut self, node: NodeId) -> Res<()> {
        let g = self.graph();
        let is_fork = g.is_prim(node, Prim::Fork);
        let name = self.file.names.unique(if is_fork { "__forked_function" } else { "__awaitable_function" });
        let Some(inner) = g.attr(node, attrs::subgraph()).and_then(|a| a.as_graph()) else {
            return Err(unprintable("a task without a function"));
        };
        let texts = g.operands(node).map(|v| self.text_of(v)).collect::<Res<Vec<_>>>()?;
        self.line(&format!("def {name}():"));
        self.agenda.push(PrintStep::Task(node, name));
        self.begin(inner, inner.inputs().zip(texts).collect())
    }
}

fn first(g: &Graph, block: BlockId) -> NodeId {
    g.nodes(block).next().unwrap_or_else(|| g.ret(block))
}
