//! Phase 4: types across branches and loops, and of structural operators whose result types follow from their operands.

use super::{Findings, VerifyError};
use crate::graph::{Graph, WalkStep};
use crate::id::{NodeId, ValueId};
use crate::op::Prim;
use crate::types::{ClassEnv, Type, TypeKind, is_subtype};
use crate::value::IValue;

struct Checker<'a> {
    g: &'a Graph,
    classes: &'a dyn ClassEnv,
    findings: &'a mut Findings,
}

pub(super) fn check(g: &Graph, classes: &dyn ClassEnv, findings: &mut Findings) {
    let mut c = Checker { g, classes, findings };
    for step in g.walk(g.root()) {
        if let WalkStep::Node(node) = step {
            match g.prim(node) {
                Some(Prim::If) => c.branch(node),
                Some(Prim::Loop) => c.repeat(node),
                Some(Prim::TupleConstruct | Prim::TupleUnpack) => c.tuple(node),
                Some(Prim::ListConstruct | Prim::ListUnpack) => c.list(node),
                Some(Prim::DictConstruct) => c.dict(node),
                Some(Prim::Constant) => c.constant(node),
                Some(Prim::Isinstance | Prim::HasAttr) => {
                    c.is(node, g.result(node, 0), Type::BOOL, "the result");
                }
                _ => {}
            }
            for v in g.results(node) {
                if matches!(g.ty(v).kind(), TypeKind::Overflow) {
                    c.wrong(
                        node,
                        "V039",
                        format!("the type of %{} is nested too deeply or has too many elements", g.name(v)),
                    );
                }
            }
        }
    }
}

impl Checker<'_> {
    fn wrong(&mut self, node: NodeId, code: &'static str, message: String) {
        self.findings.push(VerifyError::new(code, node, message));
    }

    fn fits(&self, from: Type, to: Type) -> bool {
        from == to || is_subtype(from.erase_shapes(), to.erase_shapes(), self.classes)
    }

    fn flow(&mut self, node: NodeId, from: ValueId, to: ValueId, how: &str) {
        let (a, b) = (self.g.ty(from), self.g.ty(to));
        if !self.fits(a, b) {
            let message = format!(
                "{how}: %{} of type {a} flows into %{} of type {b}",
                self.g.name(from),
                self.g.name(to)
            );
            self.wrong(node, "V030", message);
        }
    }

    fn is(&mut self, node: NodeId, value: ValueId, ty: Type, what: &str) {
        let found = self.g.ty(value);
        if found != ty {
            self.wrong(
                node,
                "V031",
                format!("{what}, %{}, has type {found}, needs {ty}", self.g.name(value)),
            );
        }
    }

    fn constant(&mut self, node: NodeId) {
        let result = self.g.result(node, 0);
        let ty = self.g.ty(result);
        // A constant without a value is a function, whose name is a separate attribute, or an undefined tensor.
        let given = |value: &IValue| !matches!(value, IValue::None);
        if let Some(value) = self.g.constant(result).filter(given).filter(|value| !value.fits(ty)) {
            let message = format!("a constant of type {} whose result has type {ty}", value.type_of());
            self.wrong(node, "V034", message);
        }
    }

    fn branch(&mut self, node: NodeId) {
        self.is(node, self.g.operand(node, 0), Type::BOOL, "the condition");
        for b in 0..2 {
            let block = self.g.block(node, b);
            for i in 0..self.g.result_count(node) {
                let out = self.g.operand(self.g.ret(block), i);
                self.flow(node, out, self.g.result(node, i), "an output of a branch");
            }
        }
    }

    fn repeat(&mut self, node: NodeId) {
        let g = self.g;
        let body = g.block(node, 0);
        let (param, ret) = (g.param(body), g.ret(body));
        self.is(node, g.operand(node, 0), Type::INT, "the trip count");
        self.is(node, g.operand(node, 1), Type::BOOL, "the initial condition");
        self.is(node, g.result(param, 0), Type::INT, "the iteration number");
        self.is(node, g.operand(ret, 0), Type::BOOL, "the continuation condition");
        for i in 0..g.result_count(node) {
            let carried = g.result(param, i + 1);
            self.flow(node, g.operand(node, i + 2), carried, "an initial carried value");
            self.flow(node, g.operand(ret, i + 1), carried, "a carried value");
            self.flow(node, g.operand(ret, i + 1), g.result(node, i), "a final carried value");
            self.flow(node, g.operand(node, i + 2), g.result(node, i), "the result of no iterations");
        }
    }

    fn tuple(&mut self, node: NodeId) {
        let g = self.g;
        let build = g.is_prim(node, Prim::TupleConstruct);
        let whole = if build { g.result(node, 0) } else { g.operand(node, 0) };
        let ty = g.ty(whole);
        let TypeKind::Tuple(tuple) = ty.kind() else {
            if !(matches!(ty.kind(), TypeKind::Any | TypeKind::AnyTuple | TypeKind::Tensor(_)) && !build) {
                self.wrong(node, "V032", format!("%{} has type {ty}, needs a tuple", g.name(whole)));
            }
            return;
        };
        let parts: Vec<ValueId> = if build { g.operands(node).collect() } else { g.results(node).collect() };
        if parts.len() != tuple.elems.len() {
            self.wrong(node, "V033", format!("{} elements for a tuple of type {ty}", parts.len()));
            return;
        }
        for (&part, &elem) in parts.iter().zip(&*tuple.elems) {
            let (from, to) = if build { (g.ty(part), elem) } else { (elem, g.ty(part)) };
            if !self.fits(from, to) {
                let message = format!("%{} of type {} does not fit {elem}", g.name(part), g.ty(part));
                self.wrong(node, "V030", message);
            }
        }
    }

    fn list(&mut self, node: NodeId) {
        let g = self.g;
        let build = g.is_prim(node, Prim::ListConstruct);
        let whole = if build { g.result(node, 0) } else { g.operand(node, 0) };
        let TypeKind::List(elem) = g.ty(whole).kind() else {
            self.wrong(node, "V032", format!("%{} has type {}, needs a list", g.name(whole), g.ty(whole)));
            return;
        };
        let parts: Vec<ValueId> = if build { g.operands(node).collect() } else { g.results(node).collect() };
        for part in parts {
            let (from, to) = if build { (g.ty(part), *elem) } else { (*elem, g.ty(part)) };
            if !self.fits(from, to) {
                let message = format!("%{} of type {} does not fit {elem}", g.name(part), g.ty(part));
                self.wrong(node, "V030", message);
            }
        }
    }

    fn dict(&mut self, node: NodeId) {
        let g = self.g;
        let whole = g.result(node, 0);
        let TypeKind::Dict(key, value) = g.ty(whole).kind() else {
            self.wrong(
                node,
                "V032",
                format!("%{} has type {}, needs a dictionary", g.name(whole), g.ty(whole)),
            );
            return;
        };
        for (i, part) in g.operands(node).enumerate() {
            let to = if i % 2 == 0 { *key } else { *value };
            if !self.fits(g.ty(part), to) {
                self.wrong(
                    node,
                    "V030",
                    format!("%{} of type {} does not fit {to}", g.name(part), g.ty(part)),
                );
            }
        }
    }
}
