//! Compilation of one function from its trees to SSA.

use std::sync::Arc;

use flambeau_ir::module::Function;
use flambeau_ir::schema::Argument;
use flambeau_ir::{Diagnostic, Fault, FunctionSchema, Graph, Prim, Symbol, Type, ValueId};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::env::Binding;
use super::fun::{Cx, Fun, Res, Returns, SourceFile};
use super::matching::{CallArgs, CallArgument};
use super::session::{CompileSession, context};
use super::sugar::Sugar;
use super::types::TypeReader;
use crate::span::Span;
use crate::ssa;
use crate::trampoline::{Task, Trampoline};
use crate::tree::{TreeId, TreeKind};
use crate::view;

/// Returns the declared schema of a function; the result type is `Tensor` if it has no annotation.
pub(crate) fn declared_schema(
    session: &CompileSession<'_>,
    name: Symbol,
    file: &Arc<SourceFile>,
    def: TreeId,
    self_type: Option<Type>,
) -> Res<FunctionSchema> {
    let mut schema = TypeReader { session, file }.schema(name, def, self_type)?;
    if schema.returns.is_empty() {
        schema.returns.push(Argument::new(Symbol::EMPTY, Type::TENSOR));
    }
    Ok(schema)
}

/// Compiles a declared function, or returns it if it is compiled already.
pub(crate) fn function<'a>(
    session: &'a CompileSession<'a>,
    trampoline: &'a Trampoline<'a>,
    name: Symbol,
) -> Task<'a, Res<Arc<Function>>> {
    Box::pin(async move {
        if let Some(done) = session.compiled(name) {
            return Ok(done);
        }
        let (file, def, self_type) = session.begin(name)?;
        let result = body(session, trampoline, name, file, def, self_type).await;
        session.end(name, result.as_ref().map_err(Box::clone));
        result.map(Arc::new)
    })
}

async fn body<'a>(
    session: &'a CompileSession<'a>,
    trampoline: &'a Trampoline<'a>,
    name: Symbol,
    file: Arc<SourceFile>,
    def: TreeId,
    self_type: Option<Type>,
) -> Res<Function> {
    let mut schema = TypeReader { session, file: &file }.schema(name, def, self_type)?;
    let trees = file.parsed.ast.size(def);
    let cx = context(session, trampoline, Fun::new(session, Arc::clone(&file), name, trees));
    if let Some(state) = unannotated_state(&cx, def, name)
        && let Some(param) = schema.args.get_mut(1)
    {
        let getter = Symbol::new(&name.as_str().replace("__setstate__", "__getstate__"));
        if !session.has_function(getter) {
            return cx.fail(state, "`__setstate__` without annotation takes the result of `__getstate__`, which the class does not define");
        }
        param.ty = cx.function_schema(getter).await?.return_type();
    }
    let root = cx.block();
    cx.fun.env.borrow_mut().push(root);
    cx.fun.returns.set(Returns { declared: schema.returns.first().map(|r| r.ty), merged: None });
    parameters(&cx, def, &schema)?;
    let statements = {
        let ast = cx.ast();
        view::Def::of(ast, def).map(|d| d.body().to_vec()).unwrap_or_default()
    };
    cx.statements(&statements).await?;
    cx.report_problems()?;
    let result = finish_returns(&cx, def)?;
    if schema.returns.is_empty() {
        schema.returns.push(Argument::new(Symbol::EMPTY, result));
    } else if let Some(declared) = schema.returns.first_mut() {
        *declared = Argument::new(Symbol::EMPTY, result);
    }
    let graph = to_ssa(cx)?;
    Ok(Function { name, schema: Arc::new(schema), graph: Arc::new(graph) })
}

/// Takes the graph out of an emitted function and converts it to SSA.
fn to_ssa(cx: Cx<'_>) -> Res<Graph> {
    let Cx { fun, session, .. } = cx;
    // All compilation steps have ended, so this is the only reference.
    let Some(fun) = std::rc::Rc::into_inner(fun) else {
        return Err(Box::new(Diagnostic::new(
            Fault::Internal,
            "F0199",
            "the function is still being compiled",
        )));
    };
    let name = fun.name;
    let mut graph = fun.graph.into_inner();
    match ssa::convert(&mut graph, &mut |stage, graph| session.look(name, stage, graph)) {
        Ok(()) => {
            graph.keep_journal(true);
            Ok(graph)
        }
        // Annotated types are within the limits on depth and size, but inferred types can exceed them.
        Err(node) => {
            let problem = Diagnostic::new(Fault::Limit, "F0109", "the type of this value is too large");
            let place = graph.locs().range(graph.loc(node));
            Err(Box::new(match place {
                Some(place) => problem.at(place),
                None => problem,
            }))
        }
    }
}

/// Returns the names used in a tree, in order of first use.
fn names_used(cx: &Cx<'_>, root: TreeId) -> IndexSet<Symbol, FxBuildHasher> {
    let ast = cx.ast();
    let mut names = IndexSet::default();
    let mut stack = vec![root];
    while let Some(tree) = stack.pop() {
        if ast.kind(tree) == TreeKind::Var {
            names.insert(Symbol::new(ast.name(tree)));
        }
        stack.extend(ast.children(tree).iter().rev());
    }
    names
}

/// A closure: the captured values, the graph of its body with these as inputs, and its result type.
pub(crate) type Closure = (Vec<ValueId>, Graph, Type);

/// Compiles a nested function at its use, with the variables that it mentions as inputs.
pub(crate) fn closure<'a>(outer: Cx<'a>, def: TreeId) -> Task<'a, Res<Closure>> {
    Box::pin(async move {
        let span = outer.span(def);
        let name = Symbol::new(&format!("{}.{}", outer.fun.name, outer.ast().name(def)));
        let trees = outer.ast().size(def);
        let fun = Fun::new(outer.session, Arc::clone(&outer.fun.file), name, trees);
        let cx = context(outer.session, outer.trampoline, fun);
        let (params, declared, statements) = {
            let ast = cx.ast();
            let Some(def) = view::Def::of(ast, def) else { return cx.fail(span, "this is not a function") };
            let decl = view::Decl::of(ast, def.decl());
            (decl.map_or(0, |d| d.params().len()), decl.and_then(view::Decl::result), def.body().to_vec())
        };
        if params > 0 {
            return outer.not_torchscript(span, "a function with parameters inside of a function is");
        }
        cx.fun.env.borrow_mut().push(cx.block());
        let declared = declared.map(|tree| cx.type_reader().read(tree)).transpose()?;
        cx.fun.returns.set(Returns { declared, merged: None });
        let mut captured = Vec::new();
        outer.at(span);
        for name in names_used(&outer, def) {
            match outer.lookup(name) {
                Some(Ok(Sugar::Value(value))) => {
                    let ty = outer.ty(value);
                    let input = cx.edit(|e| e.add_input(ty));
                    cx.set_name(input, name);
                    cx.fun.env.borrow_mut().set(name, Binding::Typed(ty));
                    cx.store(name, input);
                    captured.push(value);
                }
                Some(Ok(sugar)) => cx.fun.env.borrow_mut().set(name, Binding::Sugared(sugar)),
                Some(Err(_)) | None => {}
            }
        }
        cx.statements(&statements).await?;
        cx.report_problems()?;
        let result = finish_returns(&cx, def)?;
        let mut body = to_ssa(cx)?;
        drop_unused_captures(&mut body, &mut captured);
        order_inputs(&mut body, &mut captured);
        Ok((captured, body, result))
    })
}

/// Removes unused inputs of a closure's body and the values captured for them. A variable that only dead code of the
/// body mentions is then dead outside too.
fn drop_unused_captures(body: &mut Graph, captured: &mut Vec<ValueId>) {
    let inputs: Vec<ValueId> = body.inputs().collect();
    for (i, input) in inputs.into_iter().enumerate().rev() {
        if body.use_count(input) == 0 {
            let root = body.root();
            body.edit().remove_block_input(root, i);
            captured.remove(i);
        }
    }
}

/// Orders the inputs of a closure's body, and the values captured for them, by first use in the body. In the order of the
/// source, statements without effect would influence the order of the outputs of blocks outside.
fn order_inputs(body: &mut Graph, captured: &mut Vec<ValueId>) {
    let Some(order) = ssa::inputs_by_first_use(body) else { return };
    let param = body.param(body.root());
    body.edit().permute_results(param, &order);
    *captured = order.iter().map(|&i| captured[i as usize]).collect();
}

/// Compiles the call of an operator into a graph for a task. Arguments that are not constants become inputs.
pub(crate) fn operator_task<'a>(
    outer: Cx<'a>,
    span: Span,
    callee: Sugar,
    args: CallArgs,
) -> Task<'a, Res<Closure>> {
    Box::pin(async move {
        let fun = Fun::new(outer.session, Arc::clone(&outer.fun.file), outer.fun.name, 1);
        let cx = context(outer.session, outer.trampoline, fun);
        cx.fun.env.borrow_mut().push(cx.block());
        cx.at(span);
        let mut captured = Vec::new();
        let mut capture = |given: CallArgument| {
            let ty = outer.ty(given.value);
            let value = match outer.known(given.value) {
                Some(constant) => cx.edit(|e| e.constant_of(constant, ty)),
                None => {
                    captured.push(given.value);
                    cx.edit(|e| e.add_input(ty))
                }
            };
            CallArgument { value, ..given }
        };
        let inner = CallArgs {
            receiver: args.receiver.map(&mut capture),
            positional: args.positional.into_iter().map(&mut capture).collect(),
            keywords: args.keywords.into_iter().map(|(name, given)| (name, capture(given))).collect(),
        };
        let sugar = cx.call(span, callee, inner).await?;
        let value = cx.as_value(span, sugar)?;
        let result = cx.ty(value);
        cx.edit(|e| e.add_output(value));
        Ok((captured, to_ssa(cx)?, result))
    })
}

/// Returns the range of the parameter of a method `__setstate__` that has no annotation: its type is that of the result of
/// `__getstate__`.
fn unannotated_state(cx: &Cx<'_>, def: TreeId, name: Symbol) -> Option<Span> {
    if !name.as_str().ends_with(".__setstate__") {
        return None;
    }
    let ast = cx.ast();
    let decl = view::Decl::of(ast, view::Def::of(ast, def)?.decl())?;
    let [_, state] = decl.params() else { return None };
    let param = view::Param::of(ast, *state)?;
    param.annotation().is_none().then(|| cx.span(*state))
}

fn parameters(cx: &Cx<'_>, def: TreeId, schema: &FunctionSchema) -> Res<()> {
    let trees = {
        let ast = cx.ast();
        let decl = view::Def::of(ast, def).and_then(|d| view::Decl::of(ast, d.decl()));
        decl.map(|d| d.params().to_vec()).unwrap_or_default()
    };
    for (arg, &tree) in schema.args.iter().zip(&trees) {
        cx.at(cx.span(tree));
        let value = cx.edit(|e| e.add_input(arg.ty));
        cx.set_name(value, arg.name);
        if arg.ty.is_tensor() && view::Param::of(cx.ast(), tree).is_some_and(|p| p.annotation().is_none()) {
            cx.fun.unannotated.borrow_mut().push(arg.name);
        }
        if cx.fun.env.borrow().find(arg.name).is_some() {
            return cx
                .fail(cx.span(tree), format!("duplicate argument '{}' in function definition", arg.name));
        }
        cx.fun.env.borrow_mut().set(arg.name, Binding::Typed(arg.ty));
        cx.store(arg.name, value);
    }
    Ok(())
}

/// Appends `return None` if the end of the body is reachable. Returns the result type of the function.
fn finish_returns(cx: &Cx<'_>, def: TreeId) -> Res<Type> {
    let span = cx.span(def);
    if !cx.block_exits() {
        if cx.fun.returns.get().declared.is_some_and(|t| t != Type::NONE) {
            return cx.fail(
                span,
                "Function was not annotated as having type None, but does not return along all paths",
            );
        }
        cx.at(span);
        let none = cx.none();
        cx.return_value(span, none)?;
    }
    let returns = cx.fun.returns.get();
    // A function that always raises has its declared result type.
    let result = returns.merged.or(returns.declared).unwrap_or(Type::NONE);
    cx.at(span);
    let placeholder = cx.value(Prim::Uninitialized, &[], result);
    cx.edit(|e| e.add_output(placeholder));
    Ok(result)
}
