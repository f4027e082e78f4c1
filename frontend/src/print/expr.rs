//! Printing of one node as an expression.
//!
//! Operands already have texts: names, or expressions that [`super::inline`] nests here. Most nodes are calls of
//! `torch.…` or `ops.ns.…`; constructs with their own syntax have a table row or a match arm below.

use std::rc::Rc;

use flambeau_ir::attr::names as attrs;
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{NodeId, Prim, Symbol, Type, ValueId};

use super::body::Body;
use super::names::is_identifier;
use super::{Definition, Res, overload, unprintable};
use crate::emit::structural;

/// Operators that are printed as calls of an unqualified function.
const PLAIN_CALLS: [(&str, &str); 5] = [
    ("aten::Int", "int"),
    ("aten::Float", "float"),
    ("aten::Bool", "bool"),
    ("aten::str", "str"),
    ("aten::sorted", "sorted"),
];

/// Conversions that the compiler inserts for a type annotation.
const IMPLICIT: [&str; 4] =
    ["aten::ScalarImplicit", "aten::FloatImplicit", "aten::IntImplicit", "aten::ComplexImplicit"];

/// Operators that are printed as member accesses.
const MEMBERS: [(&str, &str); 2] = [("prim::EnumName", "name"), ("prim::EnumValue", "value")];

/// Operators that are printed under another name.
const RENAMED: [(&str, &str); 2] =
    [("aten::backward", "torch.autograd.backward"), ("aten::grad", "torch.autograd.grad")];

fn row(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}

/// Returns true if the element type of a container can be inferred from its elements.
fn is_inferable(elem: Type) -> bool {
    !matches!(
        elem.kind(),
        TypeKind::Union(_)
            | TypeKind::Optional(_)
            | TypeKind::Number
            | TypeKind::Interface(_)
            | TypeKind::Any
    )
}

fn comma_separated(texts: &[Rc<str>]) -> String {
    texts.join(", ")
}

impl Body<'_, '_, '_> {
    /// Returns the expression of a node.
    pub(super) fn expression(&mut self, node: NodeId) -> Res<String> {
        let g = self.graph();
        let operands = g.operands(node).map(|v| self.text_of(v)).collect::<Res<Vec<_>>>()?;
        let text = match g.prim(node) {
            Some(Prim::Constant) => return self.structural(node, Prim::Constant, &operands),
            Some(prim) => self.structural(node, prim, &operands),
            None => self.operator(node, &operands),
        }?;
        Ok(self.file.marks.numbered(text, || {
            // If archived code has no record of its original source, the text printed from it has none either.
            let range = g.locs().range(g.loc(node))?;
            if range.source.origin.is_some() { range.original() } else { Some(range) }
        }))
    }

    fn result_type(&self, node: NodeId) -> Type {
        let g = self.graph();
        g.results(node).next().map_or(Type::NONE, |v| g.ty(v))
    }

    fn structural(&mut self, node: NodeId, prim: Prim, operands: &[Rc<str>]) -> Res<String> {
        let ty = self.result_type(node);
        let g = self.graph();
        let attr_name = || g.attr(node, attrs::name()).and_then(|a| a.as_str()).unwrap_or_default();
        Ok(match (prim, operands) {
            (Prim::Constant, _) => return self.constant_text(g.result(node, 0)),
            (Prim::Print, _) => format!("print({})", comma_separated(operands)),
            (Prim::TupleConstruct, _) => {
                let is_named =
                    ty.as_tuple().is_some_and(|t| t.named.as_ref().is_some_and(|n| !n.name.is_empty()));
                let class = if is_named { self.printer.type_source(ty) } else { String::new() };
                let close = if operands.len() == 1 { ",)" } else { ")" };
                format!("{class}({}{close}", comma_separated(operands))
            }
            (Prim::TupleIndex, [tuple, index]) => format!("({tuple})[{index}]"),
            (Prim::TupleSlice, [tuple]) => {
                let bound = |name| g.attr(node, name).and_then(|a| a.as_int()).unwrap_or_default();
                format!("({tuple})[{}:{}]", bound(attrs::beg()), bound(attrs::end()))
            }
            (Prim::ListConstruct | Prim::EmptyListLiteral, _) => {
                let known = !operands.is_empty() && ty.list_elem().is_some_and(is_inferable);
                self.annotated(ty, known, format!("[{}]", comma_separated(operands)))
            }
            (Prim::DictConstruct, _) => {
                let inferable = ty.dict_types().is_some_and(|(k, v)| is_inferable(k) && is_inferable(v));
                let entries: Vec<String> =
                    operands.chunks_exact(2).map(|e| format!("{}: {}", e[0], e[1])).collect();
                let known = !operands.is_empty() && inferable;
                self.annotated(ty, known, format!("{{{}}}", entries.join(", ")))
            }
            (Prim::CreateObject, _) => {
                let class = self.printer.type_source(ty);
                format!("{class}.__new__({class})")
            }
            (Prim::GetAttr, [object]) => match attr_name() {
                name if is_identifier(name) => format!("{object}.{name}"),
                name => format!("getattr({object}, {})", flambeau_ir::value::quote(name.as_bytes())),
            },
            (Prim::HasAttr, [object]) => {
                format!("hasattr({object}, {})", flambeau_ir::value::quote(attr_name().as_bytes()))
            }
            (Prim::CallFunction, [function, args @ ..]) => {
                let schema = match g.ty(g.operand(node, 0)).kind() {
                    TypeKind::Function(name) => self.printer.unit.function(*name).map(|f| &*f.schema),
                    _ => None,
                };
                call(function, args, schema)
            }
            (Prim::CallMethod, [object, args @ ..]) => {
                let class = g.ty(g.operand(node, 0));
                let method = self.printer.unit.method(class, Symbol::new(attr_name()));
                call(&format!("({object}).{}", attr_name()), args, method.map(|f| &*f.schema))
            }
            (Prim::Uninitialized, _) => format!("uninitialized({})", self.printer.type_source(ty)),
            (Prim::UncheckedCast | Prim::UncheckedUnwrapOptional, [value]) => {
                format!("unchecked_cast({}, {value})", self.printer.type_source(ty))
            }
            (Prim::Annotate, [value]) => self.annotated(ty, false, value.to_string()),
            (Prim::ToList, [tensor, ..]) => self.annotated(ty, false, format!("{tensor}.tolist()")),
            (Prim::Isinstance, [value]) => {
                let types = match g.attr(node, attrs::types()) {
                    Some(flambeau_ir::Attr::Types(types)) => types.to_vec(),
                    _ => Vec::new(),
                };
                let types: Vec<String> = types.into_iter().map(|t| self.printer.type_source(t)).collect();
                match types.as_slice() {
                    [one] => format!("isinstance({value}, {one})"),
                    many => format!("isinstance({value}, ({}))", many.join(", ")),
                }
            }
            _ => match structural(prim.symbol()) {
                Some((_, schema)) => self.call_of(node, prim.symbol(), Some(&schema), operands)?,
                None => {
                    return Err(
                        self.with_node_note(node, unprintable(&format!("`{prim}`", prim = prim.name())))
                    );
                }
            },
        })
    }

    /// Wraps a container's text in a type annotation unless its type is clear from its elements.
    fn annotated(&mut self, ty: Type, known: bool, text: String) -> String {
        if known { text } else { format!("annotate({}, {text})", self.printer.type_source(ty)) }
    }

    fn operator(&mut self, node: NodeId, operands: &[Rc<str>]) -> Res<String> {
        let g = self.graph();
        let symbol = g.op_name(node);
        let name = symbol.as_str();
        if let ([value], true) = (operands, IMPLICIT.contains(&name)) {
            return Ok(self.annotated(self.result_type(node), false, value.to_string()));
        }
        if let (Some(function), [_]) = (row(&PLAIN_CALLS, name), operands) {
            return Ok(format!("{function}({})", operands[0]));
        }
        if let (Some(member), [value]) = (row(&MEMBERS, name), operands) {
            return Ok(format!("({value}).{member}"));
        }
        if let ("aten::__getitem__", [container, index]) = (name, operands) {
            return Ok(if is_identifier(container) {
                format!("{container}[{index}]")
            } else {
                format!("({container})[{index}]")
            });
        }
        if let ("aten::_unwrap_optional", [value]) = (name, operands) {
            // The text of a `None` constant does not determine the optional type, so annotate it.
            let operand = g.operand(node, 0);
            if g.ty(operand) == Type::NONE || g.constant(operand).is_some_and(|c| c.is_none()) {
                let ty = Type::optional(self.result_type(node));
                let none = self.annotated(ty, false, value.to_string());
                return Ok(format!("torch._unwrap_optional({none})"));
            }
        }
        let schema = g.registry().schema_of(g.op(node)).cloned();
        self.call_of(node, symbol, schema.as_ref(), operands)
    }

    /// Returns a call of an operator by name.
    fn call_of(
        &self,
        node: NodeId,
        name: Symbol,
        schema: Option<&FunctionSchema>,
        operands: &[Rc<str>],
    ) -> Res<String> {
        let Some(form) = overload::form(self.graph(), node, schema, self.printer.unit) else {
            let overload = schema.map(FunctionSchema::full_name).unwrap_or_default();
            return Err(
                self.with_node_note(node, unprintable(&format!("a call of the overload `{overload}`")))
            );
        };
        let mut text = callee(name);
        text.push('(');
        for (n, (i, by_name)) in form.operands(schema, operands.len()).enumerate() {
            text.push_str(if n > 0 { ", " } else { "" });
            if let Some(name) = by_name {
                text.push_str(name.as_str());
                text.push('=');
            }
            text.push_str(&operands[i]);
        }
        text.push(')');
        Ok(text)
    }

    /// Returns the text of a constant.
    fn constant_text(&mut self, value: ValueId) -> Res<String> {
        let g = self.graph();
        if let TypeKind::Function(name) = g.ty(value).kind() {
            self.printer.need(Definition::Function(*name));
            return Ok(self.printer.qualified_name(Definition::Function(*name)).to_string());
        }
        let constant = g.constant(value).unwrap_or_default();
        self.printer.constant(&constant).map_err(|e| self.with_node_note(g.def(value), e))
    }
}

/// Formats `f(a, b, )`, as PyTorch writes calls of program functions. Keyword-only arguments are written by name.
fn call(callee: &str, args: &[Rc<str>], schema: Option<&FunctionSchema>) -> String {
    let mut text = format!("{callee}(");
    let params = schema.map_or(&[][..], |s| &s.args[s.args.len().saturating_sub(args.len())..]);
    for (i, arg) in args.iter().enumerate() {
        if let Some(param) = params.get(i).filter(|p| p.kwarg_only) {
            text.push_str(&format!("{}=", param.name));
        }
        text.push_str(&format!("{arg}, "));
    }
    text.push(')');
    text
}

/// Returns the expression that names an operator.
fn callee(name: Symbol) -> String {
    if let Some(renamed) = row(&RENAMED, name.as_str()) {
        return renamed.to_owned();
    }
    match name.as_str().split_once("::") {
        Some(("aten", base)) => format!("torch.{base}"),
        Some((space, base)) => format!("ops.{space}.{base}"),
        None => name.to_string(),
    }
}
