//! Tests of the decomposition of exported programs.

use flambeau::export::FileVersion;
use flambeau::export::model::OutputSpec;
use flambeau::{DecompositionTable, ExportOptions, ExportedProgram, IValue, Session, Tensor};

fn session() -> Session {
    Session::standard().unwrap()
}

fn tensor(values: &[f32], sizes: &[i64]) -> IValue {
    IValue::Tensor(Tensor::from_vec(values.to_vec(), sizes).unwrap())
}

fn export(session: &Session, source: &str, args: &[IValue], dynamic: &[&str]) -> ExportedProgram {
    let program = session.compile_source(source, "model.py").unwrap();
    let entry = program.entry("f").unwrap();
    let dynamic = dynamic.iter().map(|text| text.parse().unwrap()).collect();
    let options = ExportOptions { dynamic, in_place: true };
    ExportedProgram::from_entry_with(&entry, args, &[], &options).unwrap()
}

fn targets(program: &ExportedProgram) -> Vec<&str> {
    let nodes = &program.model().module.graph.nodes;
    nodes.iter().map(|node| node.target.trim_start_matches("torch.ops.aten.")).collect()
}

fn floats(value: &IValue) -> Vec<f32> {
    value.as_tensor().unwrap().to_vec().unwrap()
}

const LAYER: &str = "
def f(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = torch.nn.functional.linear(x, w, b)
    y[:, 0].relu_()
    return torch.nn.functional.silu(y).softmax(-1)
";

fn layer() -> [IValue; 3] {
    [
        tensor(&[1.0, 2.0, -1.0, 0.5], &[2, 2]),
        tensor(&[0.5, -1.0, 2.0, 0.25, 1.0, 1.0], &[3, 2]),
        tensor(&[0.1, 0.2, 0.3], &[3]),
    ]
}

#[test]
fn operators_become_those_of_core_aten() {
    let session = session();
    let program = export(&session, LAYER, &layer(), &["x:0=batch"]);
    let core = DecompositionTable::core_aten(&session).unwrap();
    let decomposed = program.run_decompositions(&core).unwrap();
    assert_eq!(
        targets(&decomposed),
        [
            "permute.default",
            "addmm.default",
            "slice.Tensor",
            "select.int",
            "relu.default",
            "unsqueeze.default",
            "slice_scatter.default",
            "slice_scatter.default",
            "sigmoid.default",
            "mul.Tensor",
            "_softmax.default"
        ]
    );
    assert_eq!(decomposed.model().verifiers, ["ATEN"]);
    assert_eq!(decomposed.model().range_constraints, program.model().range_constraints);
    let again = session.load_exported_bytes(&decomposed.to_bytes(FileVersion::Torch26).unwrap()).unwrap();
    for rows in [2, 5] {
        let mut args = layer();
        let values: Vec<f32> = (0..rows * 2).map(|i| i as f32 * 0.3 - 1.0).collect();
        args[0] = tensor(&values, &[rows, 2]);
        assert_eq!(floats(&again.call(&args, &[]).unwrap()), floats(&program.call(&args, &[]).unwrap()));
    }
}

/// Operators run on examples of zeros, by which integers cannot be divided.
#[test]
fn integers_are_divided() {
    let session = session();
    let source = "def f(x: Tensor, y: Tensor) -> Tensor:\n    return torch.floor_divide(x, y) + x.remainder(y).floor_divide_(y)";
    let ints = |values: &[i64]| IValue::Tensor(Tensor::from_vec(values.to_vec(), &[2]).unwrap());
    let args = [ints(&[7, -7]), ints(&[2, 3])];
    let program = export(&session, source, &args, &[]);
    let core = DecompositionTable::core_aten(&session).unwrap();
    let decomposed = program.run_decompositions(&core).unwrap();
    assert!(
        !targets(&decomposed).iter().any(|target| target.starts_with("floor_divide")),
        "{:?}",
        targets(&decomposed)
    );
    let result = decomposed.call(&args, &[]).unwrap();
    assert_eq!(result.as_tensor().unwrap().to_vec::<i64>().unwrap(), [3, -3]);
}

#[test]
fn a_table_without_decompositions_makes_programs_functional() {
    let session = session();
    let program = export(&session, LAYER, &layer(), &[]);
    assert!(targets(&program).contains(&"relu_.default"));
    let functional = program.run_decompositions(&DecompositionTable::functional(&session).unwrap()).unwrap();
    assert!(targets(&functional).contains(&"linear.default"));
    assert!(!targets(&functional).contains(&"relu_.default"));
    assert_eq!(
        floats(&functional.call(&layer(), &[]).unwrap()),
        floats(&program.call(&layer(), &[]).unwrap())
    );
}

#[test]
fn operators_are_kept_on_request() {
    let session = session();
    let program = export(&session, LAYER, &layer(), &[]);
    let table = DecompositionTable::core_aten(&session).unwrap().without(&session, "aten::linear").unwrap();
    let decomposed = program.run_decompositions(&table).unwrap();
    assert!(targets(&decomposed).contains(&"linear.default"));
    assert!(DecompositionTable::core_aten(&session).unwrap().without(&session, "aten::no_such").is_err());
}

#[test]
fn tables_can_be_written_in_torchscript() {
    let session = session();
    let program = export(&session, LAYER, &layer(), &[]);
    let text = "# replaces aten::silu\ndef silu(x: Tensor) -> Tensor:\n    return x / (torch.exp(-x) + 1)\n";
    let table = DecompositionTable::from_source(&session, text).unwrap();
    let decomposed = program.run_decompositions(&table).unwrap();
    assert!(targets(&decomposed).contains(&"exp.default"));
    assert!(targets(&decomposed).contains(&"linear.default"));
    let wrong = "# replaces aten::silu\ndef silu(x: Tensor) -> Tensor:\n    return x.to(torch.float64)\n";
    let table = DecompositionTable::from_source(&session, wrong).unwrap();
    let error = program.run_decompositions(&table).err().unwrap();
    assert!(error.code == "E016" && error.message.contains("float64"), "{error:?}");
    assert!(DecompositionTable::from_source(&session, "# replaces aten::nothing\n").is_err());
}

#[test]
fn subgraphs_are_decomposed() {
    let source = "
def f(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = torch.nn.functional.silu(x).t()
    else:
        y = torch.rsub(x, 1).t()
    return y
";
    let session = session();
    let args = [tensor(&[1.0, 2.0, -1.0, 0.5], &[2, 2])];
    let program = export(&session, source, &args, &[]);
    let decomposed = program.run_decompositions(&DecompositionTable::core_aten(&session).unwrap()).unwrap();
    let text = decomposed.graph().to_string();
    assert!(!text.contains("aten::silu") && text.contains("aten::permute"), "{text}");
    for values in [[1.0, 2.0, -1.0, 0.5], [-1.0, -2.0, -1.0, 0.5]] {
        let args = [tensor(&values, &[2, 2])];
        let (got, want) = (decomposed.call(&args, &[]).unwrap(), program.call(&args, &[]).unwrap());
        assert_eq!(floats(&got), floats(&want));
    }
}

#[test]
fn running_statistics_are_outputs() {
    let source = "
def f(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    return torch.nn.functional.batch_norm(x, mean, var, None, None, True, 0.1, 1e-5)
";
    let session = session();
    let args = || {
        [
            tensor(&[1.0, 2.0, -1.0, 0.5, 3.0, 0.0], &[3, 2]),
            tensor(&[0.0, 0.0], &[2]),
            tensor(&[1.0, 1.0], &[2]),
        ]
    };
    let program = export(&session, source, &args(), &[]);
    let decomposed = program.run_decompositions(&DecompositionTable::core_aten(&session).unwrap()).unwrap();
    assert_eq!(targets(&decomposed), ["_native_batch_norm_legit_functional.default"]);
    let written: Vec<&str> = decomposed
        .signature()
        .outputs
        .iter()
        .filter_map(|spec| match spec {
            OutputSpec::UserInputMutation { target, .. } => Some(target.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(written, ["mean", "var"]);
    let (own, other) = (args(), args());
    assert_eq!(floats(&program.call(&own, &[]).unwrap()), floats(&decomposed.call(&other, &[]).unwrap()));
    assert_eq!(own.each_ref().map(floats), other.each_ref().map(floats));
    assert_ne!(floats(&own[1]), [0.0, 0.0]);
}

/// Operators that PyTorch composes of others, each with an operator that remains, and the results of the program.
#[test]
fn composed_operators_become_their_parts() {
    let session = session();
    let core = DecompositionTable::core_aten(&session).unwrap();
    let values: Vec<f32> = (0..24).map(|i| ((i * 7 % 11) as f32) * 0.25 - 1.0).collect();
    for (body, kept) in [
        ("torch.cdist(x, x + 1)", "_cdist_forward.default"),
        ("torch.gradient(x)[0] + torch.gradient(x, spacing=2.0, dim=1, edge_order=2)[0]", "cat.default"),
        ("x + torch.linspace(x[0, 0], x[1, 1], 6) + torch.logspace(0.0, 1.0, 6)", "where.self"),
        (
            "torch.nn.functional.interpolate(x.view(1, 1, 4, 6), size=[5, 7], mode='bicubic', align_corners=False)",
            "floor.default",
        ),
        ("torch.nn.functional.interpolate(x.view(1, 1, 4, 6), size=[5, 7], mode='nearest')", "index.Tensor"),
        ("torch.nn.functional.unfold(x.view(1, 1, 4, 6), [2, 3], padding=1)", "constant_pad_nd.default"),
        ("torch.nn.functional.fold(x.view(1, 4, 6), [3, 4], [2, 2])", "index_put.default"),
        ("torch.multi_margin_loss(x, torch.tensor([0, 5, 2, 1]))", "gather.default"),
        ("torch.multi_margin_loss(x, torch.tensor([0, 5, 2, 1]), reduction=2)", "gather.default"),
        ("torch.fft.ifft(torch.arange(6).view(2, 3)).real + x[0, 0]", "_fft_r2c.default"),
        (
            "torch.multilabel_margin_loss(x[:2], torch.tensor([[0, 5, -1, 1, 1, 1], [2, 3, 1, -1, 0, 0]]))",
            "gather.default",
        ),
        ("torch.mvlgamma(x.abs() + 3, 2)", "lgamma.default"),
        ("torch.rrelu(x, 0.1, 0.3, False)", "leaky_relu.default"),
        ("torch.matrix_exp(x[:, :4])", "linalg_matrix_exp.default"),
        ("torch.linalg.matrix_norm(x, 2) + torch.linalg.matrix_norm(x, 1)", "_linalg_svd.default"),
        ("torch.linalg.multi_dot([x, x.t(), x])", "mm.default"),
        ("torch.matrix_power(x[:, :4], 5)", "mm.default"),
        ("torch.trapezoid(x, x * 2) + torch.cumulative_trapezoid(x).sum()", "cumsum.default"),
        (
            "torch.view_as_real(torch.stft(x.view(24), 8, 4, window=torch.ones([8]), return_complex=True))",
            "_fft_r2c.default",
        ),
        ("torch.fft.irfft2(torch.fft.rfft2(x))", "_fft_c2r.default"),
        ("torch.fft.hfft(torch.fft.ifft(x), 5)", "_fft_c2r.default"),
    ] {
        let source = format!("def f(x: Tensor) -> Tensor:\n    return {body}\n");
        let program = export(&session, &source, &[tensor(&values, &[4, 6])], &[]);
        let decomposed = program.run_decompositions(&core).unwrap();
        assert!(targets(&decomposed).contains(&kept), "{body}: {:?}", targets(&decomposed));
        let args = [tensor(&values, &[4, 6])];
        let [found, wanted] = [&decomposed, &program].map(|p| floats(&p.call(&args, &[]).unwrap()));
        assert_eq!(found.len(), wanted.len(), "{body}");
        for (a, b) in found.iter().zip(&wanted) {
            assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{body}: {a} for {b}");
        }
    }
}

/// As in PyTorch: the result is the argument itself, not a tensor with its new content.
#[test]
fn what_a_program_mutates_and_returns_is_one_tensor() {
    let session = session();
    let source = "def f(x: Tensor, c: Tensor):\n    c.add_(x)\n    return c, x + c\n";
    let one = || tensor(&[1.0, 1.0], &[2]);
    let program = export(&session, source, &[one(), one()], &[]);
    let core = DecompositionTable::core_aten(&session).unwrap();
    let decomposed = program.run_decompositions(&core).unwrap();
    let is_mutation = |spec: &OutputSpec| matches!(spec, OutputSpec::UserInputMutation { .. });
    assert!(decomposed.model().module.signature.outputs.iter().any(is_mutation));
    let module = decomposed.to_module().unwrap().entry("forward").unwrap();
    for through_module in [false, true] {
        let c = one();
        let args = [one(), c.clone()];
        let result = match through_module {
            false => decomposed.call(&args, &[]).unwrap(),
            true => module.call(&args, &[]).unwrap(),
        };
        let items = result.as_tuple().unwrap().items();
        assert_eq!((floats(&items[0]), floats(&items[1])), (vec![2.0; 2], vec![3.0; 2]));
        c.as_tensor().unwrap().copy_(tensor(&[7.0, 7.0], &[2]).as_tensor().unwrap()).unwrap();
        assert_eq!(floats(&items[0]), [7.0, 7.0], "through a module: {through_module}");
    }
}
