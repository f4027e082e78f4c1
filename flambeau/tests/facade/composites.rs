//! Tests of decompositions: each composed operator has the results of its decomposition.

use flambeau::tensor::DType;
use flambeau::{DecompositionTable, ExportOptions, ExportedProgram, IValue, Session, Tensor};

/// Calls of operators on `x` and `y` of sizes [2, 3], `v` of size [3], and the operators that must not remain.
const CALLS: &[(&str, &str)] = &[
    ("torch.broadcast_to(v, [2, 3]) + torch.positive(x)", "broadcast_to positive"),
    ("torch.adjoint(x) * 2", "adjoint"),
    ("torch.fliplr(x) + torch.flipud(y)", "fliplr flipud"),
    ("torch.rot90(x, 1) + torch.rot90(y, -3)", "rot90"),
    ("torch.rot90(x, 2) + torch.rot90(y, 4)", "rot90"),
    ("torch.dstack([x, y]) + torch.atleast_3d(v.sum())", "dstack atleast_3d"),
    ("torch.column_stack([v, x.t()])", "column_stack"),
    ("torch.tensor_split(v, 2)[0] + torch.tensor_split(v, [2])[0]", "tensor_split"),
    ("torch.hsplit(x, [1])[1] + torch.vsplit(y, 2)[0][:, :2]", "hsplit vsplit"),
    ("torch.block_diag([x, v])", "block_diag"),
    ("torch.diag_embed(v, 1) + torch.diag_embed(v, -1).t()", "diag_embed"),
    ("torch.diag_embed(x, 1, 0, 2)", "diag_embed"),
    ("torch.diag(v, 1)", "diag"),
    ("torch.diag(x, 1)", "diag"),
    ("torch.take_along_dim(x, torch.argsort(y, 1), 1)", "take_along_dim"),
    ("torch.take_along_dim(x, torch.argsort(v))", "take_along_dim"),
    ("torch.msort(x)", "msort"),
    ("x.sum_to_size([1, 3]) + x.sum_to_size([3])", "sum_to_size"),
    ("torch.vdot(v, v) + torch.linalg_vecdot(x, y)", "vdot linalg_vecdot"),
    ("torch.addr(x, x[:, 0], v, beta=0.5, alpha=2)", "addr"),
    ("torch.tensordot(x, y, [0, 1], [0, 1])", "tensordot"),
    ("torch.tensordot(x, y, [1], [1])", "tensordot"),
    ("torch.inner(x, y) + torch.inner(x[0, 0], v[0])", "inner"),
    ("torch.kron(x, v)", "kron"),
    ("torch.linalg_cross(x, y) + torch.cross(x, v.expand(2, 3), 1)", "linalg_cross cross"),
    ("torch.max(x, y) - torch.min(x, v)", "max.other min.other"),
    ("torch.clamp_min(x, v) + torch.clamp_max(y, v)", "clamp_min clamp_max"),
    (
        "torch.isclose(x, y, 0.5, 0.1).float() + torch.isneginf(x).float() + torch.isposinf(x).float()",
        "isclose isneginf isposinf",
    ),
    ("torch.isin(x, v).float() + torch.isin(x, 1.0, invert=True).float()", "isin"),
    ("torch.heaviside(x, y)", "heaviside"),
    ("torch.ldexp(x, v)", "ldexp"),
    ("torch.logaddexp(x, y) + torch.logaddexp2(x, y)", "logaddexp logaddexp2"),
    ("torch.nan_to_num(x / 0.0, 2.0) / 1e30", "nan_to_num"),
    ("torch.sinc(x)", "sinc"),
    ("torch.special_xlog1py(x, y * y)", "special_xlog1py"),
    ("torch.float_power(y * y, v)", "float_power"),
    ("torch.nansum(torch.sqrt(x), [1]) + torch.nanmean(torch.sqrt(x), [1])", "nansum nanmean"),
    (
        "torch.var_mean(x)[0] + torch.std_mean(x, [0])[1] + torch.var_mean(x, [1], False)[1].sum() + torch.std_mean(x, [1], correction=2)[0].sum()",
        "var_mean std_mean",
    ),
    ("torch.diff(x) + torch.diff(x, 2, prepend=y[:, :1])", "diff"),
    ("torch.trapezoid(x, dx=0.5)", "trapezoid"),
    ("torch.pairwise_distance(x, y)", "pairwise_distance"),
    ("torch.nn.functional.margin_ranking_loss(x[0], y[0], torch.sign(v))", "margin_ranking_loss"),
    ("torch.nn.functional.hinge_embedding_loss(x, torch.sign(y))", "hinge_embedding_loss"),
    ("torch.nn.functional.cosine_embedding_loss(x, y, torch.sign(x[:, 0]))", "cosine_embedding_loss"),
    (
        "torch.nn.functional.triplet_margin_loss(x, y, v.expand(2, 3), swap=True)",
        "triplet_margin_loss pairwise_distance",
    ),
    ("torch.nn.functional.soft_margin_loss(x, torch.sign(y))", "soft_margin_loss"),
    ("torch.nn.functional.poisson_nll_loss(x, y * y, full=True)", "poisson_nll_loss"),
    ("torch.bilinear(x, y, torch.ones([4, 3, 3]), torch.arange(4.0))", "bilinear"),
    ("torch._weight_norm(x, y[:, :1], 0)", "_weight_norm norm_except_dim"),
    ("torch.nn.functional.interpolate(x.unsqueeze(0), 7, mode='linear')", "upsample_linear1d"),
    (
        "torch.nn.functional.interpolate(x.view(1, 1, 2, 3), scale_factor=2.5, mode='bilinear')",
        "upsample_bilinear2d",
    ),
    (
        "torch.nn.functional.interpolate(x.view(1, 1, 2, 3), [1, 5], mode='bilinear', align_corners=True)",
        "upsample_bilinear2d",
    ),
    (
        "torch.nn.functional.interpolate(x.view(1, 1, 1, 2, 3), [2, 3, 4], mode='trilinear')",
        "upsample_trilinear3d",
    ),
    ("torch.sgn(x) + torch.cartesian_prod([v, v]).sum()", "sgn cartesian_prod"),
    ("torch._safe_softmax(torch.log(x.relu() - 0.0), 1)", "_safe_softmax"),
    // Other dtypes, ranks and scales.
    ("torch.tensordot(x.to(torch.int32), y[:, :1].to(torch.int32), [1], [1])", "tensordot"),
    ("torch.addr(x.double(), x[:, 0], v, beta=0)", "addr"),
    ("torch.special_xlog1py(x[0, 0].half(), v[0].half())", "special_xlog1py"),
    ("torch.logaddexp(torch.complex(x, y), torch.complex(y, x)).real", ""),
    ("torch.logaddexp2(x.half(), y.half()) + torch.heaviside(x.half(), y.half())", "logaddexp2 heaviside"),
    ("torch._C._nn.upsample_linear1d(x.unsqueeze(0), [7], False, 1.0)", "upsample_linear1d"),
    ("torch.isin(x, v.repeat(9)).float()", ""),
    ("torch.kron(x.to(torch.int32), v.long()) + torch.diag(v.to(torch.int32), 1).sum()", "kron diag"),
    ("torch.negative(x) + torch.absolute(y) + torch.subtract(x, v)", "negative absolute subtract"),
];

#[test]
fn composed_operators_are_decomposed() {
    let session = Session::standard().unwrap();
    let core = DecompositionTable::core_aten(&session).unwrap();
    let tensor =
        |values: &[f32], sizes: &[i64]| IValue::Tensor(Tensor::from_vec(values.to_vec(), sizes).unwrap());
    let args = [
        tensor(&[1.0, -2.0, 0.5, 0.0, 3.0, -1.0], &[2, 3]),
        tensor(&[0.3, 2.0, -0.5, 1.0, -3.0, 1.5], &[2, 3]),
        tensor(&[1.0, 2.0, -1.0], &[3]),
    ];
    let mut problems = Vec::new();
    for (call, gone) in CALLS {
        let source = format!("def f(x: Tensor, y: Tensor, v: Tensor):\n    return {call}\n");
        let run = || -> Result<(), String> {
            let text = |e: flambeau::Error| e.render();
            let program = session.compile_source(&source, "model.py").map_err(text)?;
            let entry = program.entry("f").map_err(text)?;
            let options = ExportOptions { in_place: true, ..ExportOptions::default() };
            let exported = ExportedProgram::from_entry_with(&entry, &args, &[], &options).map_err(text)?;
            let decomposed = exported.run_decompositions(&core).map_err(text)?;
            for node in &decomposed.model().module.graph.nodes {
                let target = node.target.trim_start_matches("torch.ops.aten.");
                let name = target.split('.').next().unwrap_or(target);
                if gone.split(' ').any(|gone| gone == name || gone == target) {
                    return Err(format!("{target} remains"));
                }
            }
            let (got, want) =
                (decomposed.call(&args, &[]).map_err(text)?, entry.call(&args, &[]).map_err(text)?);
            let (got, want) = (got.as_tensor().unwrap(), want.as_tensor().unwrap());
            let values = |t: &Tensor| t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let is_near = |(a, b): (&f64, &f64)| {
                (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-5 * (1.0 + b.abs())
            };
            let fits = got.sizes() == want.sizes()
                && got.dtype() == want.dtype()
                && values(got).iter().zip(&values(want)).all(is_near);
            if fits { Ok(()) } else { Err(format!("{got:?} for {want:?}")) }
        };
        if let Err(problem) = run() {
            problems.push(format!("{call}: {problem}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Sizes that vary stay symbolic in decompositions.
#[test]
fn decompositions_hold_for_other_sizes() {
    let session = Session::standard().unwrap();
    let core = DecompositionTable::core_aten(&session).unwrap();
    let source = "
def f(x: Tensor):
    y = torch.nn.functional.interpolate(x, [4, 4], mode='bilinear')
    return y, torch.logaddexp(x, x * 2), torch.fliplr(x[0, 0]), torch.nansum(x, [2])
";
    let image = |height: i64| {
        let values = (0..height * 3).map(|i| i as f32 * 0.25 - 1.0).collect::<Vec<_>>();
        IValue::Tensor(Tensor::from_vec(values, &[1, 1, height, 3]).unwrap())
    };
    let program = session.compile_source(source, "model.py").unwrap();
    let entry = program.entry("f").unwrap();
    let dynamic = vec!["x:2=height:2..64".parse().unwrap()];
    let options = ExportOptions { in_place: true, dynamic };
    let exported = ExportedProgram::from_entry_with(&entry, &[image(4)], &[], &options).unwrap();
    let decomposed = exported.run_decompositions(&core).unwrap();
    for height in [4, 2, 9] {
        let args = [image(height)];
        let (got, want) = (decomposed.call(&args, &[]).unwrap(), entry.call(&args, &[]).unwrap());
        for (got, want) in got.as_tuple().unwrap().items().iter().zip(want.as_tuple().unwrap().items()) {
            let (got, want) = (got.as_tensor().unwrap(), want.as_tensor().unwrap());
            assert_eq!(got.sizes(), want.sizes());
            let pairs = got.to_vec::<f32>().unwrap().into_iter().zip(want.to_vec::<f32>().unwrap());
            pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{a} {b}"));
        }
    }
}

/// Calls on complex endpoints, negative bases, counts of 0 and empty tensors, with the dtype, sizes and elements of PyTorch 2.6; two
/// elements per complex number. `c` is 1+2j and `d` is 3 in float64.
const EDGES: &[(&str, DType, &[i64], &[f64])] = &[
    ("torch.linspace(c, d, 3)", DType::C64, &[3], &[1.0, 2.0, 2.0, 1.0, 3.0, 0.0]),
    ("torch.linspace(c, 4, 3)", DType::C64, &[3], &[1.0, 2.0, 2.5, 1.0, 4.0, 0.0]),
    ("torch.linspace(1, c, 3)", DType::C64, &[3], &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]),
    ("torch.linspace(c, d, 1)", DType::C64, &[1], &[1.0, 2.0]),
    ("torch.linspace(d, 1 + 1j, 3)", DType::C64, &[3], &[3.0, 0.0, 2.0, 0.5, 1.0, 1.0]),
    ("torch.linspace(1 + 1j, 3, 3)", DType::C64, &[3], &[1.0, 1.0, 2.0, 0.5, 3.0, 0.0]),
    ("torch.linspace(1 + 1j, 3, 1)", DType::C64, &[1], &[1.0, 1.0]),
    ("torch.linspace(c, d, 3, dtype=torch.complex128)", DType::C128, &[3], &[1.0, 2.0, 2.0, 1.0, 3.0, 0.0]),
    ("torch.linspace(d, 0.1, 2, dtype=torch.float64)", DType::F64, &[2], &[3.0, 0.1]),
    ("torch.logspace(0, 3, 4, -2.0)", DType::F32, &[4], &[1.0, -2.0, 4.0, -8.0]),
    ("torch.logspace(0, 1, 3, -2.0)", DType::F32, &[3], &[1.0, f64::NAN, -2.0]),
    (
        "torch.logspace(0, 2, 3, -2.0, dtype=torch.complex64)",
        DType::C64,
        &[3],
        &[1.0, 0.0, -2.0, 0.0, 4.0, 0.0],
    ),
    (
        "torch.logspace(1 + 1j, 2, 3)",
        DType::C64,
        &[3],
        &[-6.682015419, 7.439803123, 12.880187988, 28.880804062, 100.0, 0.0],
    ),
    (
        "torch.logspace(c, d, 3)",
        DType::C64,
        &[3],
        &[-1.070134163, -9.942575455, -66.82015991, 74.398033142, 1000.0, 0.0],
    ),
    ("torch.logspace(0.5, 3, 5, 2.0, dtype=torch.int32)", DType::I32, &[5], &[1.0, 1.0, 2.0, 4.0, 8.0]),
    ("torch.vander(torch.tensor([1, 2, 3]), 0)", DType::I64, &[3, 0], &[]),
    ("torch.vander(torch.tensor([1.0, 2.0]), 1)", DType::F32, &[2, 1], &[1.0, 1.0]),
    ("torch.vander(torch.tensor([True, False]), 0)", DType::I64, &[2, 0], &[]),
    ("torch.vander(torch.zeros([0]))", DType::F32, &[0, 0], &[]),
    ("torch.linalg_cond(torch.zeros([0, 0]))", DType::F32, &[], &[0.0]),
    ("torch.linalg_cond(torch.zeros([2, 0, 0]))", DType::F32, &[2], &[0.0, 0.0]),
    ("torch.linalg_cond(torch.zeros([2, 0, 0], dtype=torch.complex64), -2)", DType::F32, &[2], &[0.0, 0.0]),
    ("torch.linalg_cond(torch.zeros([0, 3, 3]))", DType::F32, &[0], &[]),
    ("torch.linalg_cond(torch.zeros([0, 3]))", DType::F32, &[], &[0.0]),
    ("torch.trapezoid(torch.zeros([0], dtype=torch.int64))", DType::I64, &[], &[0.0]),
    ("torch.trapezoid(torch.zeros([2, 0], dtype=torch.int64))", DType::I64, &[2], &[0.0, 0.0]),
    ("torch.trapezoid(torch.zeros([0, 2], dtype=torch.int64))", DType::F32, &[0], &[]),
    ("torch.trapezoid(torch.zeros([1], dtype=torch.int64))", DType::F32, &[], &[0.0]),
    (
        "torch.trapezoid(torch.zeros([2, 0], dtype=torch.int64), torch.zeros([2, 0]))",
        DType::I64,
        &[2],
        &[0.0, 0.0],
    ),
];

#[test]
fn decompositions_agree_with_pytorch_on_edges() {
    let session = Session::standard().unwrap();
    let core = DecompositionTable::core_aten(&session).unwrap();
    let source: String = EDGES
        .iter()
        .enumerate()
        .map(|(i, (call, ..))| format!("def f{i}(c: Tensor, d: Tensor):\n    return {call}\n\n"))
        .collect();
    let program = session.compile_source(&source, "model.py").unwrap();
    let c = Tensor::from_vec(vec![1.0_f32, 2.0], &[2]).unwrap().view_as_complex().unwrap();
    let d = Tensor::from_vec(vec![3.0_f64], &[]).unwrap();
    let args = [IValue::Tensor(c), IValue::Tensor(d)];
    let options = ExportOptions { in_place: true, ..ExportOptions::default() };
    let mut problems = Vec::new();
    for (i, (call, dtype, sizes, elements)) in EDGES.iter().enumerate() {
        let run = || -> Result<(), String> {
            let text = |e: flambeau::Error| e.render();
            let entry = program.entry(&format!("f{i}")).map_err(text)?;
            let exported = ExportedProgram::from_entry_with(&entry, &args, &[], &options).map_err(text)?;
            let decomposed = exported.run_decompositions(&core).map_err(text)?;
            let got = decomposed.call(&args, &[]).map_err(text)?;
            let got = got.as_tensor().unwrap();
            let parts = if got.dtype().is_complex() { got.view_as_real().unwrap() } else { got.clone() };
            let found = parts.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let is_near =
                |(a, b): (&f64, &f64)| (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * (1.0 + b.abs());
            let fits = got.dtype() == *dtype
                && got.sizes() == *sizes
                && found.len() == elements.len()
                && found.iter().zip(*elements).all(is_near);
            if fits {
                Ok(())
            } else {
                Err(format!("{got:?}: {found:?} for {dtype:?} {sizes:?} {elements:?}"))
            }
        };
        if let Err(problem) = run() {
            problems.push(format!("{call}: {problem}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
