//! Einstein summation: products of tensors over named dimensions.
//!
//! Operands are multiplied from left to right. A product without summation is elementwise; others become batched matrix
//! products. Dimensions of both operands that are needed later are the batch, those that are not needed are summed, the
//! others are rows and columns. A dimension of size 1 is removed from its operand, which implements broadcasting.
//! Dimensions are always in the order of the result, which determines strides.

use crate::pointwise::product_of;
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dim, Dims, ShapeCx, TensorFact, wrap};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::value::List;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, TensorError, matmul, reduce};

/// A named dimension: a letter, or a dimension of the ellipsis, counted from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Dots(usize),
    Letter(u8),
}

/// A tensor with a label per dimension.
struct Term {
    x: Tensor,
    labels: Vec<Label>,
}

/// Sort key of labels: the position in the result, or after all of them.
fn place(output: &[Label], label: Label) -> (usize, Label) {
    (output.iter().position(|&l| l == label).unwrap_or(output.len()), label)
}

fn wrong(what: impl std::fmt::Display) -> KernelError {
    KernelError::input(format!("einsum(): {what}"))
}

/// Parses the labels of an operand or of the result; an ellipsis represents `dots` dimensions.
fn read(text: &str, dots: usize, whose: &str, start: usize) -> Result<Vec<Label>, KernelError> {
    let mut labels = Vec::new();
    let mut rest = text;
    let mut seen = false;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("...") {
            if seen {
                return Err(wrong(match whose {
                    "output" => "found '.' for output but an ellipsis (...) was already found".to_owned(),
                    operand => format!("found '.' for {operand} for which an ellipsis was already found"),
                }));
            }
            seen = true;
            labels.extend((0..dots).rev().map(Label::Dots));
            rest = behind;
            continue;
        }
        match c {
            ' ' => {}
            'a'..='z' | 'A'..='Z' => labels.push(Label::Letter(c as u8)),
            '.' => {
                let dots = if whose == "output" { " (...)" } else { "" };
                return Err(wrong(format!("found '.' for {whose} that is not part of any ellipsis{dots}")));
            }
            _ => {
                return Err(wrong(format!(
                    "invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
                    start + text.len() - rest.len()
                )));
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(labels)
}

/// Labels an operand's dimensions; repeated labels are replaced by diagonals.
fn term(text: &str, x: &Tensor, operand: usize, start: usize) -> Result<Term, KernelError> {
    let letters = text.chars().filter(char::is_ascii_alphabetic).count();
    let dots = if text.contains("...") { x.rank().saturating_sub(letters) } else { 0 };
    let named = read(text, dots, &format!("operand {operand}"), start)?;
    if named.len() != x.rank() {
        let rest = if text.contains("...") { "" } else { " and no ellipsis was given" };
        return Err(wrong(format!(
            "the number of subscripts in the equation ({}) {} the number of dimensions ({}) for operand {operand}{rest}",
            named.len(),
            if rest.is_empty() { "is more than" } else { "does not match" },
            x.rank()
        )));
    }
    let (mut x, mut labels) = (x.clone(), named);
    let mut at = 0;
    while at < labels.len() {
        let Some(other) = (at + 1..labels.len()).find(|&j| labels[j] == labels[at]) else {
            at += 1;
            continue;
        };
        if x.sizes()[at] != x.sizes()[other] {
            let name = if let Label::Letter(name) = labels[at] { char::from(name) } else { '.' };
            return Err(wrong(format!(
                "subscript {name} is repeated for operand {operand} but the sizes don't match, {} != {}",
                x.sizes()[other],
                x.sizes()[at]
            )));
        }
        // `diagonal` appends the dimension, which is moved back to the position of the first.
        x = x.diagonal(0, at as i64, other as i64)?.movedim(&[-1], &[at as i64])?;
        labels.remove(other);
    }
    Ok(Term { x, labels })
}

impl Term {
    /// Removes dimensions of size 1.
    fn squeezed(self) -> Result<Term, KernelError> {
        let ones: Vec<i64> =
            (0..self.x.rank()).filter(|&d| self.x.sizes()[d] == 1).map(|d| d as i64).collect();
        let kept = self.labels.iter().enumerate().filter(|(d, _)| self.x.sizes()[*d] != 1);
        let labels = kept.map(|(_, l)| *l).collect();
        let x = if ones.is_empty() { self.x } else { self.x.squeeze(&ones)? };
        Ok(Term { x, labels })
    }

    /// Permutes the dimensions into the order of labels.
    fn ordered(self, output: &[Label]) -> Result<Term, KernelError> {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_by_key(|&d| place(output, self.labels[d]));
        let x = self.x.permute(&order.iter().map(|&d| d as i64).collect::<Vec<_>>())?;
        Ok(Term { x, labels: order.iter().map(|&d| self.labels[d]).collect() })
    }

    /// Inserts dimensions of size 1 for missing labels.
    fn among(&self, labels: &[Label]) -> Computed {
        let mut x = self.x.clone();
        for (d, l) in labels.iter().enumerate() {
            if !self.labels.contains(l) {
                x = x.unsqueeze(d as i64)?;
            }
        }
        Ok(x)
    }

    /// Sums over dimensions that are not needed.
    fn summed(self, needed: impl Fn(Label) -> bool) -> Result<Term, KernelError> {
        let summed: Vec<i64> =
            (0..self.labels.len()).filter(|&d| !needed(self.labels[d])).map(|d| d as i64).collect();
        if summed.is_empty() {
            return Ok(self);
        }
        let x = reduce::sum(&self.x, Some(&summed), false, None)?;
        Ok(Term { x, labels: self.labels.into_iter().filter(|&l| needed(l)).collect() })
    }

    /// Permutes the dimensions into groups of labels and merges each group.
    fn grouped(&self, groups: [&[Label]; 3]) -> Computed {
        let at = |l: &Label| self.labels.iter().position(|m| m == l).map(|d| d as i64);
        let order: Vec<i64> = groups.iter().flat_map(|g| g.iter()).filter_map(at).collect();
        let permuted = self.x.permute(&order)?;
        let mut sizes = permuted.sizes().iter();
        let joined: Vec<i64> = groups.iter().map(|g| sizes.by_ref().take(g.len()).product::<i64>()).collect();
        Ok(permuted.reshape(&joined)?)
    }

    fn size(&self, label: Label) -> i64 {
        self.labels.iter().position(|&l| l == label).map_or(1, |d| self.x.sizes()[d])
    }
}

/// Multiplies two terms and sums over labels that are not needed; labels are in the order of `output`.
fn multiply(a: Term, b: Term, output: &[Label], needed: impl Fn(Label) -> bool) -> Result<Term, KernelError> {
    let a = a.summed(|l| needed(l) || b.labels.contains(&l))?;
    let b = b.summed(|l| needed(l) || a.labels.contains(&l))?;
    for &l in &a.labels {
        if b.labels.contains(&l) && a.size(l) != b.size(l) {
            return Err(wrong(format!(
                "subscript has size {} for an operand which does not broadcast with previously seen size {}",
                b.size(l),
                a.size(l)
            )));
        }
    }
    let pick = |from: &Term, keep: &dyn Fn(Label) -> bool| -> Vec<Label> {
        from.labels.iter().copied().filter(|&l| keep(l)).collect()
    };
    let batch = pick(&a, &|l| b.labels.contains(&l) && needed(l));
    let inner = pick(&a, &|l| b.labels.contains(&l) && !needed(l));
    let left = pick(&a, &|l| !b.labels.contains(&l));
    let right = pick(&b, &|l| !a.labels.contains(&l));
    if inner.is_empty() {
        let mut labels = [batch, left, right].concat();
        labels.sort_by_key(|&l| place(output, l));
        return Ok(Term { x: product_of(&a.among(&labels)?, &b.among(&labels)?)?, labels });
    }
    let (x, y) = (a.grouped([&batch, &left, &inner])?, b.grouped([&batch, &inner, &right])?);
    let product = matmul::bmm(&x, &y)?;
    let labels: Vec<Label> = [batch, left, right].concat();
    let sizes: Vec<i64> =
        labels.iter().map(|&l| if a.labels.contains(&l) { a.size(l) } else { b.size(l) }).collect();
    Term { x: product.view(&sizes)?, labels }.ordered(output)
}

/// Returns the result labels of an equation without an arrow: the ellipsis, then letters that occur once.
fn implied(sides: &[&str], dots: usize) -> Vec<Label> {
    let mut counts = [0usize; 128];
    sides
        .iter()
        .flat_map(|s| s.bytes())
        .filter(u8::is_ascii_alphabetic)
        .for_each(|c| counts[usize::from(c)] += 1);
    let letters = (0..128u8).filter(|&c| counts[usize::from(c)] == 1).map(Label::Letter);
    (0..dots).rev().map(Label::Dots).chain(letters).collect()
}

/// Evaluates an equation.
pub(super) fn evaluate(equation: &str, tensors: &[Tensor]) -> Computed {
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let sides: Vec<&str> = inputs.split(',').collect();
    if tensors.is_empty() {
        return Err(wrong("must provide at least one operand"));
    }
    if sides.len() != tensors.len() {
        let fewer = if sides.len() < tensors.len() { "more" } else { "fewer" };
        return Err(wrong(format!("{fewer} operands were provided than specified in the equation")));
    }
    let mut terms = Vec::with_capacity(tensors.len());
    let mut sizes: Vec<(Label, i64)> = Vec::new();
    let (mut dots, mut start) = (0, 0);
    for (operand, (text, x)) in sides.iter().zip(tensors).enumerate() {
        let t = term(text, x, operand, start)?;
        start += text.len() + 1;
        dots = dots.max(t.labels.iter().filter(|l| matches!(l, Label::Dots(_))).count());
        for &l in &t.labels {
            let n = t.size(l);
            match sizes.iter_mut().find(|(m, _)| *m == l) {
                Some((_, known)) if *known == 1 => *known = n,
                Some((Label::Letter(name), known)) if n != 1 && n != *known => {
                    return Err(wrong(format!(
                        "subscript {} has size {n} for operand {operand} which does not broadcast with previously seen size \
                         {known}",
                        char::from(*name)
                    )));
                }
                Some(_) => {}
                None => sizes.push((l, n)),
            }
        }
        terms.push(t);
    }
    let output = match output {
        Some(text) => read(text, dots, "output", inputs.len() + 2)?,
        None => implied(&sides, dots),
    };
    for (i, l) in output.iter().enumerate() {
        let name = if let Label::Letter(name) = l { char::from(*name) } else { '.' };
        if output[..i].contains(l) {
            return Err(wrong(format!("output subscript {name} appears more than once in the output")));
        }
        if !sizes.iter().any(|(m, _)| m == l) {
            return Err(wrong(format!(
                "output subscript {name} does not appear in the equation for any input operand"
            )));
        }
    }
    // A single operand is also summed over dimensions of size 1, because that widens integers.
    let alone = terms.len() == 1;
    let terms = terms.into_iter().map(|t| if alone { Ok(t) } else { t.squeezed() }?.ordered(&output));
    let mut terms = terms.collect::<Result<Vec<_>, KernelError>>()?.into_iter();
    let Some(mut product) = terms.next() else { return Err(wrong("must provide at least one operand")) };
    while let Some(next) = terms.next() {
        let later: Vec<Label> = terms.as_slice().iter().flat_map(|t| t.labels.iter().copied()).collect();
        product = multiply(product, next, &output, |l| output.contains(&l) || later.contains(&l))?;
    }
    let product = product.summed(|l| output.contains(&l))?;
    let order: Vec<i64> =
        output.iter().filter_map(|l| product.labels.iter().position(|m| m == l).map(|d| d as i64)).collect();
    let permuted = product.x.permute(&order)?;
    let full: Vec<i64> = output.iter().map(|&l| product.size(l)).collect();
    Ok(permuted.reshape(&full)?)
}

fn einsum(cx: &KernelCx<'_>) -> Computed {
    let equation = String::from_utf8_lossy(cx.str_bytes(0)?).into_owned();
    evaluate(&equation, &cx.tensors(1)?)
}

/// `(tensor, dimensions, tensor, dimensions, …)`, optionally followed by those of the result: labels are numbers below
/// 52.
fn einsum_of_sublists(cx: &KernelCx<'_>) -> Computed {
    let letters = |i: usize| -> Result<String, KernelError> {
        let letter = |&name: &i64| match u8::try_from(name) {
            Ok(name @ 0..26) => Ok((b'A' + name) as char),
            Ok(name @ 26..52) => Ok((b'a' + name - 26) as char),
            _ => Err(wrong(format!("not in the range [0, 52): the subscript {name}"))),
        };
        cx.ints(i)?.iter().map(letter).collect()
    };
    let mut tensors = Vec::new();
    let mut sides = Vec::new();
    let mut at = 0;
    while at + 1 < cx.n_args() {
        tensors.push(cx.tensor(at)?.clone());
        sides.push(letters(at + 1)?);
        at += 2;
    }
    let mut equation = sides.join(",");
    if at < cx.n_args() {
        equation = format!("{equation}->{}", letters(at)?);
    }
    evaluate(&equation, &tensors)
}

/// `(self, other, dims_self, dims_other)`.
fn tensordot(cx: &KernelCx<'_>) -> Computed {
    let (mut a, mut b, da, db) = (cx.tensor(0)?.clone(), cx.tensor(1)?.clone(), cx.ints(2)?, cx.ints(3)?);
    let wrong = |what: String| KernelError::input(what);
    if da.len() != db.len() {
        return Err(wrong("both dimension lists should have same length".to_owned()));
    }
    if a.dtype() != b.dtype() {
        return Err(wrong("both inputs should have same dtype".to_owned()));
    }
    if a.dtype() == DType::Bool && a.numel() > 0 && b.numel() > 0 {
        // PyTorch computes `tensordot` with `mm`, which does not support bool.
        return Err(TensorError::DType { op: "addmm_impl_cpu_", dtype: a.dtype() }.into());
    }
    let name = |i: usize| Label::Dots(i);
    let mut left: Vec<Label> = (0..a.rank()).map(name).collect();
    let mut right: Vec<Label> = (0..b.rank()).map(|i| name(1000 + i)).collect();
    for (&i, &j) in da.iter().zip(&db) {
        let i = flambeau_tensor::wrap_dim(i, a.rank())?;
        let j = flambeau_tensor::wrap_dim(j, b.rank())?;
        let (m, n) = (a.size(i as i64)?, b.size(j as i64)?);
        if m != n && m != 1 && n != 1 {
            return Err(wrong(format!(
                "contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
            )));
        }
        let taken = [(i, &left), (j, &right)];
        if let Some((dim, _)) = taken.into_iter().find(|(d, side)| matches!(side[*d], Label::Letter(_))) {
            return Err(wrong(format!("dim {dim} appears multiple times in the list of dims")));
        }
        // A dimension that meets one of size 1 is summed, in the dtype of the operand.
        let sum = |x: &Tensor, dim: usize| reduce::sum(x, Some(&[dim as i64]), true, Some(x.dtype()));
        if n == 1 && m != 1 {
            a = sum(&a, i)?;
        } else if m == 1 && n != 1 {
            b = sum(&b, j)?;
        }
        left[i] = Label::Letter(i as u8);
        right[j] = Label::Letter(i as u8);
    }
    let open = |l: &Label| matches!(l, Label::Dots(_));
    let output: Vec<Label> = left.iter().chain(&right).copied().filter(open).collect();
    let sizes: Vec<i64> = left
        .iter()
        .zip(a.sizes())
        .chain(right.iter().zip(b.sizes()))
        .filter(|(l, _)| open(l))
        .map(|(_, n)| *n)
        .collect();
    let a = Term { x: a, labels: left }.squeezed()?;
    let b = Term { x: b, labels: right }.squeezed()?;
    let product = multiply(a, b, &output, |l| output.contains(&l))?;
    let order: Vec<i64> =
        output.iter().filter_map(|l| product.labels.iter().position(|m| m == l).map(|d| d as i64)).collect();
    Ok(product.x.permute(&order)?.reshape(&sizes)?.contiguous()?)
}

/// Shape: the size of each result letter in the operands. Unknown if the equation has an ellipsis or no arrow.
fn named(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let equation = cx.constant(0)?.as_str()?.to_string();
    let (from, to) = equation.split_once("->").filter(|_| !equation.contains('.'))?;
    let letters = |part: &str| part.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let operands: Vec<Option<Dims>> =
        cx.elements(1)?.iter().map(|f| f.as_tensor().and_then(|t| t.dims.clone())).collect();
    let mut known: Vec<(char, Dim)> = Vec::new();
    for (part, dims) in from.split(',').zip(operands) {
        known.extend(letters(part).into_iter().zip(dims.unwrap_or_default()));
    }
    // Sizes of 1 are broadcast.
    let size = |c: char, cx: &mut ShapeCx<'_>| {
        let all: Dims = known.iter().filter(|(k, _)| *k == c).map(|(_, d)| *d).collect();
        let met = all.iter().try_fold(Dim::Known(1), |met, &d| cx.symbols.broadcast(met, d));
        cx.size_or_fresh(if all.is_empty() { Dim::Unknown } else { met.unwrap_or(Dim::Unknown) })
    };
    let dims: Dims = letters(to).into_iter().map(|c| size(c, cx)).collect();
    Some(TensorFact::of_dims(dims))
}

/// Shape: the dimensions of both operands that are not summed.
fn contracted_sizes(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let mut kept = Dims::new();
    for (tensor, summed) in [(0, 2), (1, 3)] {
        let (dims, summed) = (cx.dims_or_fresh(tensor)?, cx.known_ints(summed)?);
        let summed: Vec<usize> = summed.iter().map(|&d| wrap(d, dims.len())).collect::<Option<_>>()?;
        kept.extend(dims.iter().enumerate().filter(|(i, _)| !summed.contains(i)).map(|(_, d)| *d));
    }
    Some(TensorFact::of_dims(kept))
}

pub(super) fn family() -> Vec<OpDef> {
    let doc = "Products summed over named dimensions.";
    let draw = |g: &mut flambeau_exec::Gen<'_>, sizes: &[i64]| {
        sample::tensor(g, sizes, DType::F32, &ElementDistribution::default())
    };
    let facts = |d: OpDef| {
        d.with(ResultShapes::from(named)).with(Dtype::of_inexact(1)).with(Sample::args(move |g| {
            let tensors = vec![draw(g, &[2, 3]), draw(g, &[3, 4])];
            vec![IValue::str("ij,jk->ki"), IValue::List(List::from_tensors(tensors))]
        }))
    };
    let mut defs = op("einsum", "", doc).facts(facts).one(einsum);
    let facts = |d: OpDef| {
        d.with(ResultShapes::from(|_| None::<TensorFact>)).with(Dtype::of_inexact(0)).with(Sample::args(
            move |g| {
                let (a, b) = (draw(g, &[2, 3]), draw(g, &[3, 4]));
                vec![IValue::Tensor(a), IValue::ints(vec![0, 1]), IValue::Tensor(b), IValue::ints(vec![1, 2])]
            },
        ))
    };
    defs.extend(op("einsum", "sublist", doc).without_out().facts(facts).one(einsum_of_sublists));
    let doc = "The sum of products over pairs of dimensions.";
    let facts = |d: OpDef| {
        d.with(ResultShapes::from(contracted_sizes)).with(Dtype::same_as(0)).with(Sample::args(move |g| {
            let (a, b) = (draw(g, &[2, 3, 4]), draw(g, &[4, 3, 2]));
            vec![IValue::Tensor(a), IValue::Tensor(b), IValue::ints(vec![1, 2]), IValue::ints(vec![1, 0])]
        }))
    };
    defs.extend(op("tensordot", "", doc).facts(facts).one(tensordot));
    defs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(values: &[f32], sizes: &[i64]) -> Tensor {
        Tensor::from_slice(values, sizes).unwrap()
    }

    fn value(equation: &str, tensors: &[Tensor]) -> (Vec<i64>, Vec<f32>) {
        let x = evaluate(equation, tensors).unwrap();
        (x.sizes().to_vec(), x.to_vec().unwrap())
    }

    #[test]
    fn products_sums_and_diagonals() {
        let (a, b) = (t(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), t(&[5.0, 6.0, 7.0, 8.0], &[2, 2]));
        assert_eq!(value("ij,jk", &[a.clone(), b.clone()]), (vec![2, 2], vec![19.0, 22.0, 43.0, 50.0]));
        assert_eq!(value("ii", std::slice::from_ref(&a)), (vec![], vec![5.0]));
        assert_eq!(value("ii->i", std::slice::from_ref(&a)), (vec![2], vec![1.0, 4.0]));
        assert_eq!(value("ba", std::slice::from_ref(&a)), (vec![2, 2], vec![1.0, 3.0, 2.0, 4.0]));
        assert_eq!(value("...j,j...->...", &[a.clone(), b.clone()]).0, [2]);
        assert_eq!(value("ij,ij->", &[a.clone(), b.clone()]), (vec![], vec![70.0]));
        let row = t(&[1.0, 10.0], &[1, 2]);
        assert_eq!(value("ij,ij->ij", &[a.clone(), row]), (vec![2, 2], vec![1.0, 20.0, 3.0, 40.0]));
        assert_eq!(
            value("i,j,k->kij", &[t(&[2.0], &[1]), t(&[3.0], &[1]), t(&[1.0, 2.0], &[2])]).1,
            [6.0, 12.0]
        );
        assert!(evaluate("ij->ik", std::slice::from_ref(&a)).is_err());
        assert!(evaluate("i", std::slice::from_ref(&a)).is_err());
        assert!(evaluate("ij,jk->ik", &[a, t(&[0.0; 6], &[3, 2])]).is_err());
    }
}
