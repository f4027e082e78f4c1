//! Matrix products.

use super::{Args, Array, Number, Reference};

pub(super) fn reference(name: &str) -> Option<Reference> {
    let run: fn(Args<'_>) -> Option<Vec<Array>> = match name {
        "aten::mm" | "aten::bmm" | "aten::mv" | "aten::dot" | "aten::matmul" => {
            |args| Some(vec![product(&args.array(0)?, &args.array(1)?)?])
        }
        "aten::linear" => linear,
        "aten::addmm" | "aten::baddbmm" | "aten::addmv" => added,
        "aten::outer" | "aten::ger" => |args| {
            let (a, b) = (args.array(0)?, args.array(1)?);
            let sizes = [*a.sizes.first()?, *b.sizes.first()?];
            Some(vec![Array::from_fn(&sizes, |i| a.data[i[0]] * b.data[i[1]])])
        },
        _ => return None,
    };
    Some(Reference { run, exact: true })
}

/// Returns the product of vectors, matrices, or batches of matrices with broadcast leading dimensions.
fn product(a: &Array, b: &Array) -> Option<Array> {
    let (mut a, mut b) = (a.clone(), b.clone());
    let (row, column) = (a.sizes.len() == 1, b.sizes.len() == 1);
    if row {
        a.sizes.insert(0, 1);
    }
    if column {
        b.sizes.push(1);
    }
    let (ra, rb) = (a.sizes.len(), b.sizes.len());
    if ra < 2 || rb < 2 || a.sizes[ra - 1] != b.sizes[rb - 2] {
        return None;
    }
    let (m, k, n) = (a.sizes[ra - 2], a.sizes[ra - 1], b.sizes[rb - 1]);
    let rank = ra.max(rb);
    let lead = |array: &Array, d: usize| {
        let missing = rank - array.sizes.len();
        if d < missing { 1 } else { array.sizes[d - missing] }
    };
    let mut sizes: Vec<usize> =
        (0..rank - 2).map(|d| if lead(&a, d) == 1 { lead(&b, d) } else { lead(&a, d) }).collect();
    sizes.extend([m, n]);
    let base = |array: &Array, index: &[usize]| {
        let lead = array.sizes.len() - 2;
        let own = &index[index.len() - 2 - lead..index.len() - 2];
        own.iter().zip(&array.sizes).fold(0, |at, (&i, &n)| at * n + if n == 1 { 0 } else { i })
    };
    let mut out = Array::from_fn(&sizes, |index| {
        let (i, j) = (index[index.len() - 2], index[index.len() - 1]);
        let (left, right) = (base(&a, index) * m * k, base(&b, index) * k * n);
        (0..k).map(|l| a.data[left + i * k + l] * b.data[right + l * n + j]).sum::<Number>()
    });
    if column {
        out.sizes.pop();
    }
    if row {
        out.sizes.remove(out.sizes.len() - usize::from(!column) - 1);
    }
    Some(out)
}

fn linear(args: Args<'_>) -> Option<Vec<Array>> {
    let (input, weight, bias) = (args.array(0)?, args.array(1)?, args.optional(2)?);
    let [o, k] = weight.sizes[..] else { return None };
    let mut sizes = input.sizes.clone();
    *sizes.last_mut()? = o;
    Some(vec![Array::from_fn(&sizes, |index| {
        let (lead, j) = (&index[..index.len() - 1], index[index.len() - 1]);
        let row = lead.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i) * k;
        let sum: Number = (0..k).map(|l| input.data[row + l] * weight.data[j * k + l]).sum();
        sum + bias.as_ref().map_or(Number::default(), |b| b.broadcast_at(&[j]))
    })])
}

/// `beta * self + alpha * (a b)`.
fn added(args: Args<'_>) -> Option<Vec<Array>> {
    let (start, beta, alpha) = (args.array(0)?, args.number(3)?, args.number(4)?);
    let product = product(&args.array(1)?, &args.array(2)?)?;
    Some(vec![Array::from_fn(&product.sizes, |index| {
        let kept = if beta == 0.0 { Number::default() } else { start.broadcast_at(index) * beta };
        kept + product.at(index) * alpha
    })])
}
