//! One function from its trees to SSA.

use std::sync::Arc;

use flambeau_ir::module::Function;
use flambeau_ir::schema::Argument;
use flambeau_ir::{FunctionSchema, Prim, Symbol, Type};

use super::env::Entry;
use super::fun::{Cx, Fun, Res, Returns, SourceFile};
use super::session::{Session, context};
use super::types::TypeReader;
use crate::deep::{Deep, Task};
use crate::ssa;
use crate::tree::TreeId;
use crate::view;

/// What a function declares of itself; the result is `Tensor` if it says nothing.
pub(crate) fn declared_schema(
    session: &Session<'_>,
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

/// Compiles a declared function, unless that is done.
pub(crate) fn function<'a>(
    session: &'a Session<'a>,
    deep: &'a Deep<'a>,
    name: Symbol,
) -> Task<'a, Res<Arc<Function>>> {
    Box::pin(async move {
        if let Some(done) = session.compiled(name) {
            return Ok(done);
        }
        let (file, def, self_type) = session.begin(name)?;
        let result = body(session, deep, name, file, def, self_type).await;
        session.end(name, result.as_ref().ok());
        result.map(Arc::new)
    })
}

async fn body<'a>(
    session: &'a Session<'a>,
    deep: &'a Deep<'a>,
    name: Symbol,
    file: Arc<SourceFile>,
    def: TreeId,
    self_type: Option<Type>,
) -> Res<Function> {
    let mut schema = TypeReader { session, file: &file }.schema(name, def, self_type)?;
    let cx = context(session, deep, Fun::new(session, Arc::clone(&file), name));
    let root = cx.block();
    cx.fun.env.borrow_mut().push(root);
    cx.fun.returns.set(Returns { declared: schema.returns.first().map(|r| r.ty), merged: None });
    parameters(&cx, def, &schema)?;
    let statements = {
        let ast = cx.ast();
        view::Def::of(ast, def).map(|d| d.body().to_vec()).unwrap_or_default()
    };
    cx.statements(&statements).await?;
    let result = finish_returns(&cx, def)?;
    if schema.returns.is_empty() {
        schema.returns.push(Argument::new(Symbol::EMPTY, result));
    } else if let Some(declared) = schema.returns.first_mut() {
        *declared = Argument::new(Symbol::EMPTY, result);
    }
    let Cx { fun, .. } = cx;
    // Every step has ended, so nothing else holds the function.
    let Some(fun) = std::rc::Rc::into_inner(fun) else {
        return Err(Box::new(flambeau_ir::Diagnostic::new(
            flambeau_ir::Fault::Internal,
            "F0199",
            "the function is still being compiled",
        )));
    };
    let mut graph = fun.graph.into_inner();
    ssa::convert(&mut graph, &mut |stage, graph| session.look(name, stage, graph));
    Ok(Function { name, schema: Arc::new(schema), graph: Arc::new(graph) })
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
        if cx.fun.env.borrow().find(arg.name).is_some() {
            return cx
                .fail(cx.span(tree), format!("duplicate argument '{}' in function definition", arg.name));
        }
        cx.fun.env.borrow_mut().set(arg.name, Entry::Typed(arg.ty));
        cx.store(arg.name, value);
    }
    Ok(())
}

/// The end of the body returns `None` if control gets there. Answers the function's result type.
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
    // A function that always raises has the type it declares.
    let result = returns.merged.or(returns.declared).unwrap_or(Type::NONE);
    cx.at(span);
    let placeholder = cx.value(Prim::Uninitialized, &[], result);
    cx.edit(|e| e.add_output(placeholder));
    Ok(result)
}
