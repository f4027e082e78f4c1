//! Symbolic numbers: numbers that are only known when the exported program is called.
//!
//! During the export a number has a value, that of the example, and may be symbolic in addition: then a node of the graph
//! computes it. A symbolic number is a size that varies ([`super::sizes`]) or is read from a varying tensor; Python
//! functions of symbolic numbers are symbolic, too. Operators take symbolic numbers as arguments. Any other use of a
//! symbolic number would make its value in the example a constant of the program, and is refused.

use super::constraints::{Narrowing, suggestion};
use super::joined::{Leaf, not_a_number, number_dtype};
use super::record::Recorder;
use super::sizes::{Compare, GuardResult};
use super::{Res, refused};
use flambeau_analysis::shape::{Dim, Range};
use flambeau_exec::KernelError;
use flambeau_export::ExportError;
use flambeau_export::build::{NumberMeta, target_of};
use flambeau_export::expr::{Expr, ExprId, Func};
use flambeau_export::model::{
    Argument, ArgumentKind, Device, NamedArgument, NodeMetadata, RangeConstraint, ScalarType, Sym, SymBool,
    SymFloat, SymInt,
};
use flambeau_ir::{IValue, OpId, PythonFunction, Symbol};
use flambeau_tensor::{DType, Scalar, Tensor};

/// A symbolic number.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    source: Source,
    expr: ExprId,
    /// The value in the example.
    pub(super) value: IValue,
    /// The symbolic integer, as the analysis of shapes has it.
    dim: Option<Dim>,
    /// The comparison of which a truth value is the result.
    question: Option<(Compare, Dim, Dim)>,
    /// The tensor from which the number was read, with the content of that time.
    pub(super) tensor: Option<Tensor>,
}

/// The node that computes a number.
#[derive(Clone, Debug)]
enum Source {
    /// A node, by the name of its value and the number of scopes around the one that has it.
    Value(String, usize),
    /// The size of a tensor in a dimension, or its number of elements. The node is made when it is needed.
    Size(Tensor, Option<usize>),
}

/// The result of a Python function of symbolic numbers.
pub(super) enum Computed {
    /// The operator is not such a function.
    Unknown,
    /// The result does not depend on the symbols.
    Constant,
    /// A symbolic number.
    Number(Symbolic),
}

impl Symbolic {
    /// Returns a text that only this number has.
    pub(super) fn key(&self) -> String {
        match &self.source {
            Source::Value(name, depth) => format!("{name}:{depth}"),
            Source::Size(tensor, dim) => format!("#{}:{dim:?}", tensor.id()),
        }
    }

    /// Returns the number that a node of a scope computes.
    pub(super) fn of_node(
        name: &str,
        depth: usize,
        expr: ExprId,
        value: IValue,
        dim: Option<Dim>,
    ) -> Symbolic {
        let source = Source::Value(name.to_owned(), depth);
        Symbolic { source, expr, value, dim, question: None, tensor: None }
    }

    /// Returns the integer as the analysis of shapes has it.
    pub(super) fn dim(&self) -> Option<Dim> {
        self.dim
    }
}

impl Recorder {
    /// Returns a size of a tensor, or its number of elements, if it is symbolic.
    pub(super) fn size_of(&mut self, tensor: &Tensor, dim: Option<usize>) -> Option<Symbolic> {
        let dims = self.sizes.of(tensor)?.to_vec();
        let (size, value) = match dim {
            Some(dim) => (*dims.get(dim)?, tensor.sizes()[dim]),
            None => (self.sizes.product(&dims), tensor.numel() as i64),
        };
        let Dim::Sym(_) = size else { return None };
        let expr = self.sizes.expr(size, &mut self.exprs)?;
        let source = Source::Size(tensor.clone(), dim);
        Some(Symbolic {
            source,
            expr,
            value: IValue::Int(value),
            dim: Some(size),
            question: None,
            tensor: None,
        })
    }

    /// Records the number that an operator reads from a tensor with one element. `value` is the number in the example.
    pub(super) fn item(&mut self, tensor: &Tensor, value: &IValue) -> Res<Symbolic> {
        let element = tensor.item().map_err(KernelError::from)?;
        let read = match element {
            Scalar::Int(n) => IValue::Int(n),
            Scalar::Float(x) => IValue::Float(x),
            Scalar::Bool(b) => IValue::Bool(b),
            Scalar::Complex(_) => return Err(refused("a complex number is read from a tensor")),
        };
        // The number is that of the tensor's content at this time.
        let mut from = self.snapshot(tensor)?;
        let mut read = read;
        if value.is_bool() && tensor.dtype() != DType::Bool {
            from = self.nonzero(&from)?;
            read = value.clone();
        }
        let inputs = vec![operand("self", Argument::Tensor(self.name_of(&from)?))];
        let target = self.target("aten::item")?;
        let (expr, dim) = self.unbacked(&read)?;
        let mut made = self.number_node("item", &target, inputs, (expr, dim), &read)?;
        made.tensor = Some(from);
        self.converted(made, value)
    }

    /// Returns a number as an integer or float if `value` is one: a node of its own unless it has the type.
    pub(super) fn converted(&mut self, number: Symbolic, value: &IValue) -> Res<Symbolic> {
        let (target, func) = match (&number.value, value) {
            (IValue::Int(_), IValue::Float(_)) => ("torch.sym_float", Func::ToFloat),
            (IValue::Float(_), IValue::Int(_)) => ("torch.sym_int", Func::TruncToInt),
            (IValue::Bool(_), IValue::Int(_) | IValue::Float(_)) => {
                return Err(refused("a truth value that is only known at run time is taken as a number"));
            }
            _ => return Ok(number),
        };
        let expr = self.exprs.call(func, [number.expr]).map_err(ExportError::from)?;
        let inputs = vec![NamedArgument { name: "a".to_owned(), arg: self.number(&number)?, kind: None }];
        self.number_node(last_part(target), target, inputs, (expr, None), value)
    }

    fn target(&self, op: &str) -> Res<String> {
        let id = self.registry().lookup(op).ok_or_else(|| refused(format!("`{op}` is not registered")))?;
        Ok(target_of(self.registry().schema(id)))
    }

    /// Returns the expression of a number that no size determines.
    fn unbacked(&mut self, value: &IValue) -> Res<(ExprId, Option<Dim>)> {
        let number = self.marks.unbacked;
        self.marks.unbacked += 1;
        let (dim, hint) = match value {
            IValue::Float(_) => {
                let symbol = format!("zuf{number}");
                let expr = self.exprs.parse(&format!("Symbol('{symbol}')")).map_err(ExportError::from)?;
                self.ranges.insert(symbol, RangeConstraint::default());
                return Ok((expr, None));
            }
            IValue::Bool(b) => (Range { min: 0, max: 1 }, i64::from(*b)),
            other => (Range::ALL, other.as_int().unwrap_or_default()),
        };
        let dim = self.sizes.unbacked(&format!("u{number}"), dim, hint, &mut self.exprs)?;
        let expr = self.sizes.expr(dim, &mut self.exprs);
        let expr = expr.ok_or_else(|| refused("a symbol has no expression"))?;
        if !value.is_bool() {
            return Ok((expr, Some(dim)));
        }
        let one = self.exprs.int(1);
        Ok((self.exprs.call(Func::Eq, [expr, one]).map_err(ExportError::from)?, None))
    }

    /// Appends a node that computes a number.
    fn number_node(
        &mut self,
        name: &str,
        target: &str,
        inputs: Vec<NamedArgument>,
        (expr, dim): (ExprId, Option<Dim>),
        value: &IValue,
    ) -> Res<Symbolic> {
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        let name = scope.builder.node_name(name);
        let output = scope.builder.define_number(&name, meta(expr, value));
        scope.builder.node(Some(name.clone()), target, inputs, vec![output], NodeMetadata::default());
        let (value, question) = (value.clone(), None);
        Ok(Symbolic { source: Source::Value(name, depth), expr, value, dim, question, tensor: None })
    }

    /// Records a Python function of numbers.
    pub(super) fn python(
        &mut self,
        op: OpId,
        operands: &[IValue],
        symbols: &[Option<Symbolic>],
        value: &IValue,
    ) -> Res<Computed> {
        let registry = self.registry().clone();
        let Some(PythonFunction([target, ..])) = registry.facet::<PythonFunction>(op) else {
            return Ok(Computed::Unknown);
        };
        let symbol_at = |i: usize| symbols.get(i).and_then(Option::as_ref);
        let logical = match last_part(target) {
            "and_" if value.is_bool() => Some("aten::logical_and"),
            "or_" if value.is_bool() => Some("aten::logical_or"),
            _ => None,
        };
        if let (Some(op), [a, b]) = (logical, operands) {
            return self.logical(op, [(a, symbol_at(0)), (b, symbol_at(1))], value);
        }
        let dims: Option<Vec<Dim>> = operands
            .iter()
            .enumerate()
            .map(|(i, operand)| match symbol_at(i) {
                Some(symbol) => symbol.dim,
                None => operand.as_int().map(Dim::Known),
            })
            .collect();
        let dim = dims.as_ref().and_then(|dims| self.sizes.apply(target, dims));
        if let (Some(Dim::Known(n)), IValue::Int(own)) = (dim, value)
            && n == *own
        {
            return Ok(Computed::Constant);
        }
        let expr = match dim.and_then(|dim| self.sizes.expr(dim, &mut self.exprs)) {
            Some(expr) => Some(expr),
            None => {
                let mut exprs = Vec::with_capacity(operands.len());
                for (i, operand) in operands.iter().enumerate() {
                    exprs.push(match symbol_at(i) {
                        Some(symbol) => symbol.expr,
                        None => self.number_expr(operand)?,
                    });
                }
                self.applied(target, &exprs, value)?
            }
        };
        let Some(expr) = expr else { return Ok(Computed::Unknown) };
        let mut inputs = Vec::with_capacity(operands.len());
        for (i, operand) in operands.iter().enumerate() {
            let arg = match (symbol_at(i), operand) {
                (Some(symbol), _) => self.number(symbol)?,
                (None, IValue::Int(n)) => Argument::SymInt(Sym::Value(*n)),
                (None, IValue::Float(x)) => Argument::Float(*x),
                (None, IValue::Bool(b)) => Argument::SymBool(Sym::Value(*b)),
                _ => return Ok(Computed::Unknown),
            };
            let name = char::from(b'a' + (i as u8).min(25)).to_string();
            inputs.push(NamedArgument { name, arg, kind: None });
        }
        let mut made = self.number_node(last_part(target), target, inputs, (expr, dim), value)?;
        made.question = match (Compare::of(target), dims.as_deref()) {
            (Some(compare), Some([a, b])) => Some((compare, *a, *b)),
            _ if last_part(target) == "not_" => {
                let inner = symbol_at(0).and_then(|symbol| symbol.question);
                inner.map(|(compare, a, b)| (compare.negated(), a, b))
            }
            _ => None,
        };
        Ok(Computed::Number(made))
    }

    /// Records a logical operator on truth values as one on tensors: PyTorch reads no such operator on symbolic ones.
    fn logical(
        &mut self,
        op: &str,
        operands: [(&IValue, Option<&Symbolic>); 2],
        value: &IValue,
    ) -> Res<Computed> {
        let mut inputs = Vec::with_capacity(2);
        for (name, (operand_value, symbol)) in ["self", "other"].into_iter().zip(operands) {
            let tensor = self.number_tensor(operand_value, symbol)?;
            inputs.push(operand(name, Argument::Tensor(self.name_of(&tensor)?)));
        }
        let made = self.leaf_tensor(&Leaf { value: value.clone(), symbol: None })?;
        self.call(op, inputs, &made)?;
        self.mark_varying(&made);
        Ok(Computed::Number(self.item(&made, value)?))
    }

    fn number_expr(&mut self, value: &IValue) -> Res<ExprId> {
        let made = match value {
            IValue::Int(n) => Ok(self.exprs.int(*n)),
            IValue::Float(x) => self.exprs.add(Expr::Float(x.to_bits())),
            IValue::Bool(b) => self.exprs.add(Expr::Bool(*b)),
            _ => return Err(refused("a number is neither an integer, a float nor a bool")),
        };
        Ok(made.map_err(ExportError::from)?)
    }

    /// Returns the expression of a Python function; `None` if expressions do not have it.
    fn applied(&mut self, target: &str, args: &[ExprId], value: &IValue) -> Res<Option<ExprId>> {
        let minus = self.exprs.int(-1);
        let func = match (target, value) {
            ("_operator.add", _) => Func::Add,
            ("_operator.mul", _) => Func::Mul,
            ("_operator.sub", _) => {
                let [a, b] = args else { return Ok(None) };
                let negated = self.exprs.call(Func::Mul, [minus, *b]);
                let made = negated.and_then(|b| self.exprs.call(Func::Add, [*a, b]));
                return Ok(Some(made.map_err(ExportError::from)?));
            }
            ("_operator.neg", _) => {
                let [a] = args else { return Ok(None) };
                return Ok(Some(self.exprs.call(Func::Mul, [minus, *a]).map_err(ExportError::from)?));
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
            ("_operator.not_" | "torch.sym_not", IValue::Bool(_)) => Func::Not,
            ("torch.sym_float", _) => Func::ToFloat,
            ("math.trunc" | "torch.sym_int", _) => Func::TruncToInt,
            ("torch.sym_max", _) => Func::Max,
            ("torch.sym_min", _) => Func::Min,
            _ => return Ok(None),
        };
        Ok(Some(self.exprs.call(func, args).map_err(ExportError::from)?))
    }

    /// Returns whether a symbolic condition has the same value in every call.
    pub(super) fn is_static(&mut self, condition: &Symbolic) -> bool {
        let Some((compare, a, b)) = condition.question else { return false };
        let outer = std::mem::replace(&mut self.sizes.is_fixed, true);
        let answer = self.sizes.compare(compare, a, b);
        self.sizes.is_fixed = outer;
        matches!(answer, Some(GuardResult::Static(_)))
    }

    /// Answers a symbolic condition on sizes: the same in every call, after ranges are restricted. `None` if the
    /// condition depends on more than sizes of arguments.
    pub(super) fn answer(&mut self, condition: &Symbolic) -> Res<Option<bool>> {
        let Some((compare, a, b)) = condition.question else { return Ok(None) };
        match self.sizes.compare(compare, a, b) {
            None => Ok(None),
            Some(GuardResult::Static(holds)) => Ok(Some(holds)),
            Some(GuardResult::Specialized(holds, narrowed)) => {
                if let Some(name) = narrowed {
                    let condition = self.condition_text(compare, a, b);
                    self.narrowings.push(Narrowing { name, condition, trace: None });
                }
                Ok(Some(holds))
            }
            Some(GuardResult::SizeDependent) => {
                let text = self.condition_text(compare, a, b);
                let holds = matches!(condition.value, IValue::Bool(true));
                let how = suggestion((compare, a, b), holds, &self.dynamic, &self.sizes);
                Err(refused(format!(
                    "the program depends on whether `{text}`, which is not the same for all sizes that may vary{how}"
                )))
            }
        }
    }

    /// Returns a comparison as text, with the caller's names for sizes.
    fn condition_text(&mut self, compare: Compare, a: Dim, b: Dim) -> String {
        let [a, b] = [a, b].map(|dim| match self.sizes.expr(dim, &mut self.exprs) {
            Some(expr) => self.sizes.named_text(&self.exprs.to_text(expr)),
            None => "a size".to_owned(),
        });
        format!("{a} {} {b}", compare.text())
    }

    /// Returns the name of a symbolic number in the innermost scope.
    pub(super) fn number_name(&mut self, symbol: &Symbolic) -> Res<String> {
        let depth = self.scopes.len() - 1;
        let (name, from) = match &symbol.source {
            Source::Value(name, from) => (name, *from),
            Source::Size(tensor, dim) => return self.size_name(symbol, tensor, *dim),
        };
        if from > depth {
            return Err(refused("a number of a branch is used outside of it"));
        }
        if from == depth {
            return Ok(name.clone());
        }
        let key = symbol.key();
        if let Some(own) = self.scope().numbers.get(&key) {
            return Ok(own.clone());
        }
        // Subgraphs take tensors only, as operands of several kinds cannot be written.
        let carrier = match &symbol.tensor {
            Some(tensor) => tensor.clone(),
            None => self.carrier(symbol, &key, from)?,
        };
        let inputs = vec![operand("self", Argument::Tensor(self.name_of(&carrier)?))];
        let target = self.target("aten::item")?;
        let made = self.number_node("item", &target, inputs, (symbol.expr, symbol.dim), &symbol.value)?;
        let Source::Value(own, _) = made.source else { return Err(refused("a symbolic number has no node")) };
        self.scope().numbers.insert(key, own.clone());
        Ok(own)
    }

    /// Returns the tensor that carries a number of a scope into subgraphs.
    fn carrier(&mut self, symbol: &Symbolic, key: &str, at: usize) -> Res<Tensor> {
        if let Some(known) = self.scopes[at].carriers.get(key) {
            return Ok(known.clone());
        }
        let inner = self.scopes.split_off(at + 1);
        let made = self.number_tensor(&symbol.value, Some(symbol));
        self.scopes.extend(inner);
        let made = made?;
        self.scopes[at].carriers.insert(key.to_owned(), made.clone());
        Ok(made)
    }

    /// Records a tensor without dimensions that has a number as its element. It has the dtype of the number.
    pub(super) fn number_tensor(&mut self, value: &IValue, symbol: Option<&Symbolic>) -> Res<Tensor> {
        let has_dtype = |tensor: &&Tensor| tensor.rank() == 0 && Some(tensor.dtype()) == number_dtype(value);
        if let Some(tensor) = symbol.and_then(|symbol| symbol.tensor.as_ref()).filter(has_dtype) {
            return Ok(tensor.clone());
        }
        let constant = match value {
            IValue::Int(n) => Argument::Int(*n),
            IValue::Float(x) => Argument::Float(*x),
            IValue::Bool(b) => Argument::Bool(*b),
            other => return Err(not_a_number(other)),
        };
        let made = self.leaf_tensor(&Leaf { value: value.clone(), symbol: None })?;
        let number = match symbol {
            Some(symbol) => self.number(symbol)?,
            None => constant,
        };
        self.full(&made, number)?;
        if symbol.is_some() {
            self.mark_varying(&made);
        }
        Ok(made)
    }

    /// Records a tensor with sizes and dtype of another, all of whose elements are a number.
    pub(super) fn full(&mut self, like: &Tensor, number: Argument) -> Res<()> {
        let dtype = ScalarType::of_dtype(like.dtype());
        let dtype = dtype
            .ok_or_else(|| refused("the format of exported programs does not have the dtype of a tensor"))?;
        let device = Device { kind: "cpu".to_owned(), index: None };
        let keyword =
            |name: &str, arg| NamedArgument { kind: Some(ArgumentKind::Keyword), ..operand(name, arg) };
        let inputs = vec![
            operand("size", Argument::Ints(like.sizes().to_vec())),
            operand("fill_value", number),
            keyword("dtype", Argument::ScalarType(dtype)),
            keyword("device", Argument::Device(device)),
            keyword("pin_memory", Argument::Bool(false)),
        ];
        self.call("aten::full", inputs, like).map(drop)
    }

    /// Returns the name of a size in the innermost scope; the node that computes it is made once in each.
    fn size_name(&mut self, symbol: &Symbolic, tensor: &Tensor, dim: Option<usize>) -> Res<String> {
        let key = (tensor.id(), dim);
        if let Some(name) = self.scope().sizes.get(&key) {
            return Ok(name.clone());
        }
        let (op, name) = match dim {
            Some(_) => ("aten::sym_size.int", "sym_size_int"),
            None => ("aten::sym_numel", "sym_numel"),
        };
        let target = self.target(op)?;
        let mut inputs = vec![operand("self", Argument::Tensor(self.name_of(tensor)?))];
        inputs.extend(dim.map(|dim| operand("dim", Argument::Int(dim as i64))));
        let made = self.number_node(name, &target, inputs, (symbol.expr, symbol.dim), &symbol.value)?;
        let Source::Value(name, _) = made.source else { return Err(refused("a symbolic size has no node")) };
        self.scope().sizes.insert(key, name.clone());
        Ok(name)
    }
}

/// Returns an argument that is passed by position.
pub(super) fn operand(name: &str, arg: Argument) -> NamedArgument {
    NamedArgument { name: name.to_owned(), arg, kind: Some(ArgumentKind::Positional) }
}

fn meta(expr: ExprId, value: &IValue) -> NumberMeta {
    match value {
        IValue::Float(_) => NumberMeta::Float(SymFloat::Expr { expr, hint: None }),
        IValue::Bool(_) => NumberMeta::Bool(SymBool::Expr { expr, hint: None }),
        _ => NumberMeta::Int(SymInt::Expr { expr, hint: None }),
    }
}

fn last_part(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or(target)
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
