//! Symbolic numbers: numbers that are only known when the exported program is called.
//!
//! During the export a number has a value, that of the example, and may be symbolic in addition: then a node of the graph
//! computes it. A symbolic number arises when the program reads a varying tensor; Python functions of symbolic numbers are
//! symbolic, too. Operators take symbolic numbers as arguments. Any other use of a symbolic number would make its value
//! in the example a constant of the program, and is refused.

use super::record::{Captured, Recorder, Scope};
use super::{Res, refused};
use flambeau_export::ExportError;
use flambeau_export::build::{GraphBuilder, NumberMeta};
use flambeau_export::expr::{ExprId, Func};
use flambeau_export::model::{Argument, NamedArgument, RangeConstraint, Sym, SymBool, SymFloat, SymInt};
use flambeau_ir::{IValue, OpId, PythonFunction, Symbol};
use flambeau_tensor::{Scalar, Tensor};

/// A symbolic number.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    /// The name of its value in the scope that defines it.
    name: String,
    /// Number of scopes around the one that defines it.
    depth: usize,
    expr: ExprId,
    /// The value in the example.
    pub(super) value: IValue,
    /// The tensor from which a truth value was read.
    pub(super) tensor: Option<Tensor>,
}

impl Symbolic {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are the result of one node.
    pub(super) fn is_same(&self, other: &Symbolic) -> bool {
        self.name == other.name && self.depth == other.depth
    }

    /// Adds the metadata of the number under a name, and returns the argument that defines it.
    pub(super) fn define(&self, builder: &mut GraphBuilder, name: &str) -> Argument {
        builder.define_number(name, meta(self.expr, &self.value))
    }
}

impl Recorder {
    /// Records the number that an operator reads from a tensor with one element. `value` is the number in the example.
    pub(super) fn item(&mut self, tensor: &Tensor, value: &IValue) -> Res<Symbolic> {
        let element = tensor.item().map_err(flambeau_exec::KernelError::from)?;
        let read = match element {
            Scalar::Int(n) => IValue::Int(n),
            Scalar::Float(x) => IValue::Float(x),
            Scalar::Bool(b) => IValue::Bool(b),
            Scalar::Complex(_) => return Err(refused("a complex number is read from a tensor")),
        };
        let op =
            self.registry().lookup("aten::item").ok_or_else(|| refused("`aten::item` is not registered"))?;
        let schema = self.registry().schema(op);
        let (target, own) = (flambeau_export::build::target_of(schema), schema.args[0].name.to_string());
        let arg = Argument::Tensor(self.name_of(tensor)?);
        let expr = self.unbacked(&read)?;
        let inputs = vec![NamedArgument { name: own, arg, kind: None }];
        let mut made = self.number_node("item", &target, inputs, expr, &read)?;
        let convert = match (&read, value) {
            (IValue::Int(_), IValue::Float(_)) => Some(("torch.sym_float", Func::ToFloat)),
            (IValue::Float(_), IValue::Int(_)) => Some(("math.trunc", Func::TruncToInt)),
            (_, IValue::Bool(_)) => None,
            (IValue::Bool(_), _) => return Err(refused("a truth value is read from a tensor as a number")),
            _ => None,
        };
        if let Some((target, func)) = convert {
            let expr = self.exprs.call(func, [made.expr]).map_err(ExportError::from)?;
            let inputs = vec![NamedArgument { name: "a".to_owned(), arg: self.number(&made)?, kind: None }];
            let last = target.rsplit('.').next().unwrap_or(target);
            made = self.number_node(last, target, inputs, expr, value)?;
        }
        if value.is_bool() {
            made.value = value.clone();
            made.tensor = Some(tensor.clone());
        }
        Ok(made)
    }

    /// Returns the expression of a number that no size determines.
    fn unbacked(&mut self, value: &IValue) -> Res<ExprId> {
        let number = self.ranges.len();
        let (symbol, text, range) = match value {
            IValue::Float(_) => {
                let symbol = format!("zuf{number}");
                let text = format!("Symbol('{symbol}')");
                (symbol, text, RangeConstraint::default())
            }
            other => {
                let symbol = format!("u{number}");
                let text = format!("Symbol('{symbol}', integer=True)");
                let bounds = RangeConstraint { min: Some(0), max: Some(1) };
                (symbol, text, if other.is_bool() { bounds } else { RangeConstraint::default() })
            }
        };
        self.ranges.insert(symbol, range);
        let expr = self.exprs.parse(&text).map_err(ExportError::from)?;
        if !value.is_bool() {
            return Ok(expr);
        }
        let one = self.exprs.int(1);
        Ok(self.exprs.call(Func::Eq, [expr, one]).map_err(ExportError::from)?)
    }

    /// Appends a node that computes a number.
    fn number_node(
        &mut self,
        name: &str,
        target: &str,
        inputs: Vec<NamedArgument>,
        expr: ExprId,
        value: &IValue,
    ) -> Res<Symbolic> {
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        let name = scope.builder.node_name(name);
        let output = scope.builder.define_number(&name, meta(expr, value));
        scope.builder.node(Some(name.clone()), target, inputs, vec![output], Default::default());
        Ok(Symbolic { name, depth, expr, value: value.clone(), tensor: None })
    }

    /// Records a Python function of numbers; `None` if the operator is not one.
    pub(super) fn python(
        &mut self,
        op: OpId,
        operands: &[IValue],
        symbols: &[Option<Symbolic>],
        value: &IValue,
    ) -> Res<Option<Symbolic>> {
        let registry = self.registry().clone();
        let Some(PythonFunction([target, ..])) = registry.facet::<PythonFunction>(op) else {
            return Ok(None);
        };
        let mut inputs = Vec::with_capacity(operands.len());
        let mut exprs = Vec::with_capacity(operands.len());
        for (i, operand) in operands.iter().enumerate() {
            let symbol = symbols.get(i).and_then(Option::as_ref);
            let arg = match (symbol, operand) {
                (Some(symbol), _) => self.number(symbol)?,
                (None, IValue::Int(n)) => Argument::SymInt(Sym::Value(*n)),
                (None, IValue::Float(x)) => Argument::Float(*x),
                (None, IValue::Bool(b)) => Argument::SymBool(Sym::Value(*b)),
                _ => return Ok(None),
            };
            exprs.push(match symbol {
                Some(symbol) => symbol.expr,
                None => self.number_expr(operand)?,
            });
            let name = char::from(b'a' + (i as u8).min(25)).to_string();
            inputs.push(NamedArgument { name, arg, kind: None });
        }
        let Some(expr) = self.applied(target, &exprs, value)? else { return Ok(None) };
        let last = target.rsplit('.').next().unwrap_or(target);
        self.number_node(last, target, inputs, expr, value).map(Some)
    }

    fn number_expr(&mut self, value: &IValue) -> Res<ExprId> {
        let made = match value {
            IValue::Int(n) => Ok(self.exprs.int(*n)),
            IValue::Float(x) => self.exprs.add(flambeau_export::expr::Expr::Float(x.to_bits())),
            IValue::Bool(b) => self.exprs.add(flambeau_export::expr::Expr::Bool(*b)),
            _ => return Err(refused("a number that is neither an integer, a float nor a truth value")),
        };
        Ok(made.map_err(ExportError::from)?)
    }

    /// Returns the expression of a Python function; `None` if expressions do not have it.
    fn applied(&mut self, target: &str, args: &[ExprId], value: &IValue) -> Res<Option<ExprId>> {
        let func = match (target, value) {
            ("_operator.add", _) => Func::Add,
            ("_operator.mul", _) => Func::Mul,
            ("_operator.sub", _) => {
                let [a, b] = args else { return Ok(None) };
                let minus = self.exprs.int(-1);
                let made =
                    self.exprs.call(Func::Mul, [minus, *b]).and_then(|b| self.exprs.call(Func::Add, [*a, b]));
                return Ok(Some(made.map_err(ExportError::from)?));
            }
            ("_operator.neg", _) => {
                let [a] = args else { return Ok(None) };
                let minus = self.exprs.int(-1);
                let made = self.exprs.call(Func::Mul, [minus, *a]);
                return Ok(Some(made.map_err(ExportError::from)?));
            }
            ("_operator.truediv", _) => Func::FloatTrueDiv,
            ("_operator.floordiv", IValue::Int(_)) => Func::FloorDiv,
            ("_operator.mod", IValue::Int(_)) => Func::PythonMod,
            ("_operator.eq", _) => Func::Eq,
            ("_operator.ne", _) => Func::Ne,
            ("_operator.lt", _) => Func::Lt,
            ("_operator.le", _) => Func::Le,
            ("_operator.gt", _) => Func::Gt,
            ("_operator.ge", _) => Func::Ge,
            ("_operator.and_", IValue::Bool(_)) => Func::And,
            ("_operator.or_", IValue::Bool(_)) => Func::Or,
            ("_operator.not_" | "torch.sym_not", IValue::Bool(_)) => Func::Not,
            ("torch.sym_float", _) => Func::ToFloat,
            ("math.trunc" | "torch.sym_int", _) => Func::TruncToInt,
            ("torch.sym_max", _) => Func::Max,
            ("torch.sym_min", _) => Func::Min,
            _ => return Ok(None),
        };
        Ok(Some(self.exprs.call(func, args).map_err(ExportError::from)?))
    }

    /// Returns the name of a symbolic number in the innermost scope.
    pub(super) fn number_name(&mut self, symbol: &Symbolic) -> Res<String> {
        let depth = self.scopes.len() - 1;
        if symbol.depth > depth {
            return Err(refused("a number of a branch is used outside of it"));
        }
        let mut name = symbol.name.clone();
        for at in symbol.depth + 1..=depth {
            let key = symbol.name.clone();
            let scope: &mut Scope = &mut self.scopes[at];
            name = match scope.numbers.get(&key) {
                Some(own) => own.clone(),
                None => {
                    let own = scope.builder.input_name(&name);
                    let input = symbol.define(&mut scope.builder, &own);
                    scope.builder.graph.inputs.push(input);
                    scope.numbers.insert(key, own.clone());
                    scope.captured.push(Captured::Number(symbol.clone()));
                    own
                }
            };
        }
        Ok(name)
    }
}

fn meta(expr: ExprId, value: &IValue) -> NumberMeta {
    match value {
        IValue::Float(_) => NumberMeta::Float(SymFloat::Expr { expr, hint: None }),
        IValue::Bool(_) => NumberMeta::Bool(SymBool::Expr { expr, hint: None }),
        _ => NumberMeta::Int(SymInt::Expr { expr, hint: None }),
    }
}

/// Operators that read the one element of a tensor, by the name of the operator.
pub(super) fn reads_element(name: Symbol) -> bool {
    matches!(
        name.as_str(),
        "aten::item"
            | "aten::Int"
            | "aten::Float"
            | "aten::Bool"
            | "aten::ScalarImplicit"
            | "aten::IntImplicit"
            | "aten::FloatImplicit"
            | "aten::is_nonzero"
    )
}
