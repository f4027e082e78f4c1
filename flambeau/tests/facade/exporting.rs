//! Tests of the export of functions and modules to exported programs.

use flambeau::export::FileVersion;
use flambeau::export::model::{Argument, GraphModel, InputSpec, OutputSpec, ScalarType, Sym, SymInt};
use flambeau::ir::value::Object;
use flambeau::ir::{Symbol, Type};
use flambeau::{Entry, Error, ExportOptions, ExportedProgram, IValue, Session, Tensor};

fn session() -> Session {
    Session::standard().unwrap()
}

fn entry(session: &Session, source: &str) -> Entry {
    let program = session.compile_source(source, "model.py").unwrap();
    let name = program.entries().pop().unwrap();
    program.entry(&name).unwrap()
}

fn tensor(values: &[f32], sizes: &[i64]) -> IValue {
    IValue::Tensor(Tensor::from_vec(values.to_vec(), sizes).unwrap())
}

fn export(source: &str, args: &[IValue]) -> Result<ExportedProgram, Error> {
    ExportedProgram::from_entry(&entry(&session(), source), args, &[])
}

/// Exports a function and compares its results with those of the exported program, also after it was written and read
/// in every version that has its operators.
fn same(source: &str, examples: &[&[IValue]]) -> ExportedProgram {
    let session = session();
    let entry = entry(&session, source);
    let exported = ExportedProgram::from_entry(&entry, examples[0], &[]).unwrap();
    check_subgraphs(&exported.model().module.graph);
    for version in FileVersion::ALL {
        let bytes = match exported.to_bytes(version) {
            Err(error) if error.code == "E015" && version == FileVersion::Torch26 => continue,
            bytes => bytes.unwrap(),
        };
        let again = session.load_exported_bytes(&bytes).unwrap();
        for args in examples {
            let want = entry.call(args, &[]).map_err(|e| e.message);
            let got = again.call(args, &[]).map_err(|e| e.message);
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{version:?}");
        }
    }
    exported
}

/// Asserts that the subgraphs of each higher-order operator return tensors of equal dtypes, and no operand or view of one: the
/// results of `cond` have one dtype and memory of their own, and a carried value of `while_loop` keeps its dtype.
fn check_subgraphs(graph: &GraphModel) {
    const VIEWS: [&str; 3] = ["aten.slice.Tensor", "aten.select.int", "aten.view.default"];
    for node in &graph.nodes {
        let subgraphs = node.inputs.iter().filter_map(|input| match &input.arg {
            Argument::Graph { graph, .. } => Some(&**graph),
            _ => None,
        });
        let subgraphs: Vec<&GraphModel> = subgraphs.collect();
        let returned = |of: &GraphModel| -> Vec<ScalarType> {
            let tensors = of.outputs.iter().filter_map(|output| match output {
                Argument::Tensor(name) => Some(&of.tensor_values[name]),
                _ => None,
            });
            tensors.map(|meta| meta.dtype).collect()
        };
        if node.target.ends_with(".cond") {
            assert_eq!(returned(subgraphs[0]), returned(subgraphs[1]), "{}", node.target);
        }
        for subgraph in subgraphs {
            for output in &subgraph.outputs {
                let Argument::Tensor(name) = output else { continue };
                let is_input = subgraph.inputs.iter().any(|i| matches!(i, Argument::Tensor(n) if n == name));
                let made = subgraph
                    .nodes
                    .iter()
                    .find(|made| made.outputs.iter().any(|o| matches!(o, Argument::Tensor(n) if n == name)));
                let is_view = made.is_some_and(|made| {
                    let of_input = matches!(&made.inputs[0].arg, Argument::Tensor(x)
                        if subgraph.inputs.iter().any(|i| matches!(i, Argument::Tensor(n) if n == x)));
                    of_input && VIEWS.iter().any(|view| made.target.ends_with(view))
                });
                assert!(!is_input && !is_view, "`{name}` of a subgraph of {}", node.target);
            }
            check_subgraphs(subgraph);
        }
        if node.target.ends_with(".while_loop") {
            let subgraph = |i: usize| match &node.inputs[i].arg {
                Argument::Graph { graph, .. } => &**graph,
                other => panic!("{other:?}"),
            };
            let body = subgraph(1);
            let inputs = body.inputs.iter().filter_map(|input| match input {
                Argument::Tensor(name) => Some(body.tensor_values[name].dtype),
                _ => None,
            });
            let carried: Vec<ScalarType> = inputs.take(body.outputs.len()).collect();
            assert_eq!(returned(body), carried, "{}", node.target);
        }
    }
}

fn targets(program: &ExportedProgram) -> Vec<&str> {
    program.model().module.graph.nodes.iter().map(|node| node.target.as_str()).collect()
}

#[test]
fn containers_loops_and_strings_leave_no_nodes() {
    let source = "
def f(x: Tensor, names: List[str], n: int) -> Dict[str, Tensor]:
    out: Dict[str, Tensor] = {}
    for i in range(n):
        y = x * i
        for name in names:
            y = y + len(name)
        out['_'.join(names) + str(i)] = y[0:x.size(0) - 1]
    unused = x.sin()
    return out
";
    let names = IValue::list(Type::STR, vec![IValue::str("a"), IValue::str("bcd")]);
    let program = same(source, &[&[tensor(&[1.0, -2.0, 0.5], &[3]), names, IValue::Int(2)]]);
    let mul_add = ["torch.ops.aten.mul.Tensor", "torch.ops.aten.add.Tensor", "torch.ops.aten.add.Tensor"];
    let once: Vec<&str> = mul_add.into_iter().chain(["torch.ops.aten.slice.Tensor"]).collect();
    assert_eq!(targets(&program), [once.clone(), once].concat());
    let specs: Vec<bool> = program
        .signature()
        .inputs
        .iter()
        .map(|spec| matches!(spec, InputSpec::ConstantInput { .. }))
        .collect();
    assert_eq!(specs, [false, true, true, true]);
}

#[test]
fn nodes_have_names_metadata_and_source_lines() {
    let program = same(
        "def f(x: Tensor) -> Tensor:\n    return x.add(1).max(0)[0]\n",
        &[&[tensor(&[1.0, 2.0], &[2, 1])]],
    );
    let graph = &program.model().module.graph;
    let names: Vec<_> = graph.nodes.iter().map(|node| node.name.clone().unwrap()).collect();
    assert_eq!(names, ["add", "max_1"]);
    let values: Vec<&str> = graph.tensor_values.keys().map(String::as_str).collect();
    assert_eq!(values, ["x", "add", "getitem", "getitem_1"]);
    let trace = &graph.nodes[0].metadata["stack_trace"];
    assert!(trace.contains("File \"model.py\", line 2, in f\n    return x.add(1).max(0)[0]"), "{trace}");
}

const WRITES: &str = "
def f(x: Tensor, y: Tensor) -> Tensor:
    z = x.clone()
    z[0].mul_(2)
    y.add_(z.sum())
    return z
";

#[test]
fn writes_remain_writes_on_request() {
    let session = session();
    let options = ExportOptions { in_place: true, ..ExportOptions::default() };
    let args = [tensor(&[1.0, 2.0], &[2]), tensor(&[0.0], &[])];
    let exported = ExportedProgram::from_entry_with(&entry(&session, WRITES), &args, &[], &options).unwrap();
    assert!(targets(&exported).contains(&"torch.ops.aten.add_.Tensor"));
    let again = session.load_exported_bytes(&exported.to_bytes(FileVersion::Torch29).unwrap()).unwrap();
    let y = tensor(&[1.0], &[]);
    let z = again.call(&[tensor(&[3.0, 4.0], &[2]), y.clone()], &[]).unwrap();
    assert_eq!(z.as_tensor().unwrap().to_vec::<f32>().unwrap(), [6.0, 4.0]);
    assert_eq!(y.as_tensor().unwrap().to_vec::<f32>().unwrap(), [11.0]);
}

#[test]
fn new_contents_of_arguments_are_outputs() {
    let exported = export(WRITES, &[tensor(&[1.0, 2.0], &[2]), tensor(&[0.0], &[])]).unwrap();
    assert_eq!(
        targets(&exported),
        ["clone.default", "select.int", "mul.Tensor", "select_scatter.default", "sum.default", "add.Tensor"]
            .map(|name| format!("torch.ops.aten.{name}"))
    );
    let specs = &exported.signature().outputs;
    assert!(
        matches!(&specs[..], [OutputSpec::UserInputMutation { arg, target }, OutputSpec::UserOutput { .. }]
            if arg == "add" && target == "y"),
        "{specs:?}"
    );
    let again = session().load_exported_bytes(&exported.to_bytes(FileVersion::Torch29).unwrap()).unwrap();
    let y = tensor(&[1.0], &[]);
    let z = again.call(&[tensor(&[3.0, 4.0], &[2]), y.clone()], &[]).unwrap();
    assert_eq!(z.as_tensor().unwrap().to_vec::<f32>().unwrap(), [6.0, 4.0]);
    assert_eq!(y.as_tensor().unwrap().to_vec::<f32>().unwrap(), [11.0]);
}

/// Programs that write to views, each of which has one tensor as an argument and writes to it or to a copy.
const VIEWS: &[&str] = &[
    "y = x.view(-1)\n    y[1:3].add_(10)\n    x[0].mul_(2)\n    return y",
    "y = x.clone()\n    a, b = y.t().split(1)[0:2]\n    b.copy_(a * 3)\n    a.zero_()\n    return y",
    "y = x.clone()\n    y.diagonal().fill_(7)\n    y.unsqueeze(0).transpose(1, 2)[0, 1] = 4\n    return y",
    "y = x.clone()\n    y.squeeze_().t_()\n    y += 1\n    return y, x",
    "y = x.clone()\n    y[y > 2] = 0\n    y.permute(1, 0).narrow(0, 0, 1).sub_(1)\n    return y",
    "y = x.clone()\n    c = y.chunk(2, 1)\n    for i, part in enumerate(y.unbind(0)):\n        part.add_(i)\n    return c[0] + c[1], y",
    "y = x.to(torch.int64)\n    y.div_(2, rounding_mode='floor')\n    return torch.add(x, 1, out=torch.empty_like(x)) + y",
    "y = x.detach()\n    y.flatten()[::2].clamp_(1, 2)\n    return x.sum()",
    "y = x.clone()\n    z = y.expand_as(y)\n    y.copy_(x.t())\n    return z * 2, y.fill_diagonal_(5.)",
];

/// Exports a function on the first arguments; each call has the results of the program, also after the file was written and
/// read, and leaves the same contents in the arguments.
fn alike<const N: usize>(source: &str, calls: &[[IValue; N]]) -> ExportedProgram {
    let session = session();
    let entry = entry(&session, source);
    let fresh = |args: &[IValue; N]| {
        let copy = |arg: &IValue| match arg {
            IValue::Tensor(t) => tensor(&t.to_vec::<f32>().unwrap(), t.sizes()),
            other => other.clone(),
        };
        args.each_ref().map(copy)
    };
    let exported = ExportedProgram::from_entry(&entry, &fresh(&calls[0]), &[]);
    let exported = exported.unwrap_or_else(|e| panic!("{} {source}", e.render()));
    check_subgraphs(&exported.model().module.graph);
    let bytes = exported.to_bytes(FileVersion::default()).unwrap();
    let again = session.load_exported_bytes(&bytes).unwrap_or_else(|e| panic!("{} {source}", e.render()));
    for call in calls {
        let (own, other) = (fresh(call), fresh(call));
        let want = entry.call(&own, &[]).unwrap();
        let got = again.call(&other, &[]).unwrap_or_else(|e| panic!("{} {source}", e.render()));
        assert_eq!(format!("{got:?}"), format!("{want:?}"), "{source}");
        assert_eq!(format!("{other:?}"), format!("{own:?}"), "{source}");
    }
    exported
}

#[test]
fn writes_to_views_have_the_results_of_the_program() {
    let session = session();
    for body in VIEWS {
        let source = format!("def f(x: Tensor):\n    {body}\n");
        let entry = entry(&session, &source);
        let argument = || tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let exported = ExportedProgram::from_entry(&entry, &[argument()], &[]).expect(body);
        assert!(
            targets(&exported).iter().all(|target| !target.split('.').rev().nth(1).unwrap().ends_with('_'))
        );
        let (own, other) = (argument(), argument());
        let want = entry.call(std::slice::from_ref(&own), &[]).unwrap();
        let got = exported.call(std::slice::from_ref(&other), &[]).unwrap();
        assert_eq!(format!("{got:?}"), format!("{want:?}"), "{body}");
        assert_eq!(format!("{other:?}"), format!("{own:?}"), "{body}");
    }
}

#[test]
fn constants_are_lifted_with_their_contents() {
    let source = "
def f(x: Tensor) -> Tensor:
    scale = torch.tensor([2.0, 3.0])
    scale.add_(1)
    count = int(torch.tensor(3) * 2)
    return x * scale * count
";
    let program = same(source, &[&[tensor(&[1.0, 2.0], &[2])]]);
    let constants: Vec<&String> = program.model().constants.keys().collect();
    assert_eq!(constants, ["lifted_tensor_0"]);
    assert_eq!(targets(&program)[0], "torch.ops.aten.lift_fresh_copy.default");
}

#[test]
fn branches_on_tensors_become_cond() {
    let source = "
def f(x: Tensor, y: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        z = x + y
        if bool(y.max() > 3):
            z = z * 2
    else:
        z = x
    return z - 1
";
    let call = |a: f32, b: f32| [tensor(&[a, 1.0], &[2]), tensor(&[b, 2.0], &[2])];
    let program = same(source, &[&call(1.0, 1.0), &call(-4.0, 1.0), &call(1.0, 4.0)]);
    assert!(targets(&program).contains(&"torch.ops.higher_order.cond"));
    let is_graph = |arg: &Argument| matches!(arg, Argument::Graph { .. });
    let nodes = &program.model().module.graph.nodes;
    assert_eq!(nodes.iter().flat_map(|n| &n.inputs).filter(|input| is_graph(&input.arg)).count(), 2);
}

/// Writes to memory from outside in branches: through views, in nested branches, to arguments, with reads before and after.
const WRITES_IN_BRANCHES: &[&str] = &[
    "if bool(x[0] > 0):\n        x.add_(1)\n    return x * 2",
    "y = x.clone()\n    v = y[0:1]\n    w = v * 3\n    if bool(x[0] > 0):\n        v.mul_(2)\n        w = w + y[0]\n    else:\n        y.neg_()\n        y[1] = w[0]\n    return y, v, w",
    "y = x.clone()\n    if bool(x[0] > 0):\n        y += 1\n        if bool(x[1] > 0):\n            y[0] = 7\n            x.mul_(y)\n        y *= 2\n    return x + y",
    "t = torch.tensor([1., 2.])\n    if bool(x[0] > 0):\n        t += x\n        s = torch.tensor([5., 6.])\n        s += 1\n        t *= s\n    return t",
    "n = 1\n    b = False\n    f = 0.5\n    if bool(x[0] > 0):\n        n = 3\n        f = float(x[1])\n        b = True\n    p = (x, n)\n    if bool(x[1] > 0):\n        p = (x * 2, n + 1)\n    if b:\n        n += 1\n    return x * n * f + p[0] * p[1]",
    "n = 0.5\n    if bool(x[0] > 0):\n        n = float(x[1])\n    return x * n",
    "if bool(x[0] > 0):\n        y = x[1:]\n    else:\n        y = x[:1]\n    return y * 2",
    "m = x > 0\n    b = bool(m[0])\n    m.fill_(False)\n    if b:\n        x = x + 1\n    return x",
];

#[test]
fn branches_write_to_memory_from_outside() {
    let calls = [[1.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]];
    for body in WRITES_IN_BRANCHES {
        alike(&format!("def f(x: Tensor):\n    {body}\n"), &calls.map(|x| [tensor(&x, &[2])]));
    }
}

/// Loops whose numbers of iterations depend on data.
const LOOPS: &[(&str, usize)] = &[
    ("while bool(x.sum() < 20):\n        x = x * 2\n    return x", 1),
    ("for i in range(int(x[0])):\n        x = x + i\n    return x", 1),
    ("n = 0\n    while bool(x.sum() < 20):\n        x = x * 2\n        n += 1\n    return x, n", 1),
    (
        "y = x.clone()\n    v = y[0]\n    while bool(y.sum() < 20):\n        v += x[1]\n        y[1] = v * 2\n    return y, v",
        1,
    ),
    ("while True:\n        x = x + 1\n        if bool(x.sum() > 20):\n            break\n    return x", 1),
    (
        "for i in range(10):\n        if bool(x[0] > i):\n            continue\n        x = x + 1\n        if bool(x.sum() > 12):\n            return x * 100\n    return x",
        1,
    ),
    (
        "k = 0\n    for i in range(int(x[0])):\n        for j in range(2):\n            k += j\n        for j in range(int(x[1])):\n            x = x + 0.5\n            k += 1\n    return x, k",
        1,
    ),
    ("c = (x, 0.5)\n    while bool(c[0].sum() < 20):\n        c = (c[0] + c[1], c[1] * 2)\n    return c", 1),
    (
        "i = 0\n    found = False\n    while not found and i < int(x[0]):\n        i += 1\n        found = bool(x[1] < i)\n    if found:\n        x = x + 1\n    return x * i",
        1,
    ),
    ("x.mul_(1)\n    while bool(x.sum() < 20):\n        x += 1\n    return x", 1),
    (
        "for i in range(10):\n        if bool(x[0] < i):\n            return x * i, i, (x, 2)\n    return x, 0, (x, 1)",
        1,
    ),
    ("i = 0\n    while i < 3:\n        x = x * 2\n        i += 1\n    return x", 0),
    (
        "t = x\n    for i in range(int(x[0])):\n        if bool(t[1] > 3):\n            t = t - 2\n            x[0] += 1\n        else:\n            t = t + 1\n    return t, x",
        1,
    ),
];

#[test]
fn loops_on_data_become_while_loop() {
    let calls = [[1.0, 2.0], [3.0, 1.0], [6.0, 3.0], [25.0, 0.5], [0.0, 4.0]];
    for (body, count) in LOOPS {
        let source = format!("def f(x: Tensor):\n    {body}\n");
        let program = alike(&source, &calls.map(|x| [tensor(&x, &[2])]));
        let found = targets(&program).iter().filter(|name| name.ends_with(".while_loop")).count();
        assert_eq!(found, *count, "{source}");
    }
}

/// Loops over sizes that may vary.
#[test]
fn loops_over_sizes_become_while_loop() {
    let source = "
def f(x: Tensor):
    s = torch.zeros([2])
    for i in range(x.size(0)):
        s = s * 0.5 + x[i]
    i = 0
    while i * 2 < x.size(0):
        i += 1
    return s, i, torch.zeros([i]).sum() + x.sum()
";
    let program = dynamic(source, &[counted(4, 2)], &["x:0=batch:2..64"]).unwrap();
    let entry = entry(&session(), source);
    for rows in [2, 4, 7] {
        let args = [counted(rows, 2)];
        let (want, got) = (entry.call(&args, &[]).unwrap(), program.call(&args, &[]).unwrap());
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
}

#[test]
fn branches_that_raise_become_assertions() {
    let source = "
def f(x: Tensor) -> Tensor:
    if bool((x < 0).any()):
        raise ValueError('negative')
    assert bool(x.sum() > 1), 'small'
    return x.sqrt()
";
    let program = same(source, &[&[tensor(&[1.0, 4.0], &[2])]]);
    let error = program.call(&[tensor(&[-1.0, 4.0], &[2])], &[]).unwrap_err();
    assert!(error.message.contains("negative"), "{error}");
    let error = program.call(&[tensor(&[0.0, 0.5], &[2])], &[]).unwrap_err();
    assert!(error.message.contains("small"), "{error}");
}

#[test]
fn numbers_of_tensors_are_symbolic() {
    let source = "
def f(x: Tensor, n: Tensor) -> Tensor:
    k = int(n.item())
    return x * (2 * k + 1) + float(x[0].item()) + torch.zeros([k]).sum()
";
    let call = |n: i64| [tensor(&[1.5, 2.0], &[2]), IValue::Tensor(Tensor::from_vec(vec![n], &[]).unwrap())];
    let program = same(source, &[&call(3), &call(5)]);
    assert!(targets(&program).contains(&"_operator.mul"));
    assert!(!program.model().range_constraints.is_empty());
}

#[test]
fn what_cannot_be_exported_is_named_with_its_line() {
    let x = || tensor(&[1.0, 2.0], &[2]);
    let refused = |body: &str, parts: &[&str]| {
        let source = format!("def f(x: Tensor) -> Tensor:\n{body}\n    return x\n");
        let error = export(&source, &[x()]).err().unwrap_or_else(|| panic!("no error: {source}"));
        assert_eq!(error.code, "E016", "{error}");
        let text = error.render();
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    };
    refused("    torch.manual_seed(3)\n    x = x + torch.rand([2])", &["aten::manual_seed", "line 2"]);
    refused(
        "    y = [x]\n    if bool(x[0] > 0):\n        y.append(x)\n    x = y[0]",
        &["`aten::append.t`", "changes the list `y` from outside"],
    );
    refused("    if bool(x[0] > 0):\n        x = x[0:1]", &["different sizes"]);
    refused("    if len(str(x)) > 3:\n        x = x + 1", &["reads a tensor"]);
    refused(
        "    out: List[Tensor] = []\n    while bool(x[0] < 3):\n        x = x + 1\n        out.append(x)\n    x = out[0]",
        &["`aten::append.t`", "changes the list `out` from outside"],
    );
    refused(
        "    d = {'a': x}\n    while bool(x[0] < 3):\n        x = x + 1\n        d['a'] = x\n    x = d['a']",
        &["changes the dictionary `d` from outside"],
    );
    let error = export("def f(x: Tensor) -> Tensor:\n    return x @ x @ x\n", &[tensor(&[1.0; 6], &[2, 3])]);
    assert_eq!(error.err().expect("an error of the program").code, "X0002");
    let error = export("def f(x: Tensor) -> Tensor:\n    return x\n", &[IValue::Int(1)]);
    assert_eq!(error.err().expect("an argument of another type").code, "X0003");
}

/// A module keeps its tensors under their names, and is not changed by the export.
#[test]
fn modules_have_their_parameters_and_buffers() {
    let session = session();
    let bytes =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../archive/tests/data/nested.pt")).unwrap();
    let program = session.load_archive_bytes(&bytes).unwrap();
    let before = format!("{:?}", program.module().unwrap().state_dict().unwrap());
    let entry = program.entry("forward").unwrap();
    let args = [tensor(&[0.5, -1.0], &[1, 2])];
    let exported = ExportedProgram::from_entry(&entry, &args, &[]).unwrap();
    assert_eq!(format!("{:?}", program.module().unwrap().state_dict().unwrap()), before);
    let names: Vec<&String> = exported.model().state_dict.keys().collect();
    assert_eq!(names.len(), program.module().unwrap().state_dict().unwrap().len());
    let outputs = &exported.signature().outputs;
    assert!(outputs.iter().all(|spec| matches!(spec, OutputSpec::UserOutput { .. })));
    for _ in 0..2 {
        let want = entry.call(&args, &[]).unwrap();
        let got = exported.call(&args, &[]).unwrap();
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
}

fn dynamic(source: &str, args: &[IValue], sizes: &[&str]) -> Result<ExportedProgram, Error> {
    let dynamic = sizes.iter().map(|text| text.parse().unwrap()).collect();
    let options = ExportOptions { dynamic, ..ExportOptions::default() };
    ExportedProgram::from_entry_with(&entry(&session(), source), args, &[], &options)
}

fn counted(rows: i64, columns: i64) -> IValue {
    let values: Vec<f32> = (0..rows * columns).map(|i| i as f32 * 0.5 - 1.0).collect();
    tensor(&values, &[rows, columns])
}

/// Sizes that vary are symbolic in metadata and arguments; branches on them restrict ranges.
#[test]
fn sizes_vary() {
    let source = "
def f(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    n = x.size(0)
    if n > 3:
        z = x.view([n // 2 * 2 // 2, -1]) if n == 0 else x
    else:
        z = x * 2
    shape = x.shape[:1] + [2, 3]
    w = y.reshape(shape).transpose(1, 2)
    return torch.cat([z, x]), torch.zeros([2 * n, x.numel()]) + w.sum()
";
    let example = [counted(4, 5), counted(4, 6)];
    let program = dynamic(source, &example, &["x:0=batch:4..64", "y:0=batch:4..64"]).unwrap();
    let model = program.model();
    let ranges: Vec<String> =
        model.range_constraints.iter().map(|(name, r)| format!("{name} {r:?}")).collect();
    assert_eq!(ranges, ["s0 RangeConstraint { min: Some(4), max: Some(64) }"]);
    assert!(targets(&program).contains(&"torch.ops.aten.sym_size.int"));
    let session = session();
    let entry = entry(&session, source);
    let again = session.load_exported_bytes(&program.to_bytes(FileVersion::Torch28).unwrap()).unwrap();
    for rows in [4, 9, 64] {
        let args = [counted(rows, 5), counted(rows, 6)];
        let (want, got) = (entry.call(&args, &[]).unwrap(), again.call(&args, &[]).unwrap());
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
    for (x, y) in [(3, 3), (65, 65), (5, 6)] {
        assert_eq!(again.call(&[counted(x, 5), counted(y, 6)], &[]).unwrap_err().code, "E013");
    }
}

/// Sizes that contents determine are symbolic, too.
#[test]
fn sizes_follow_from_contents() {
    let source = "
def f(x: Tensor) -> Tensor:
    y = x[x > 0]
    return torch.cat([y * 2, torch.zeros([y.size(0) + 1])])
";
    let program = same(source, &[&[tensor(&[1.0, -1.0, 2.0], &[3])], &[tensor(&[-1.0, -1.0, 2.0], &[3])]]);
    assert!(targets(&program).contains(&"torch.ops.aten.sym_size.int"));
}

/// A program that is another one for other sizes is refused, with the line.
#[test]
fn sizes_must_not_become_constants() {
    let refused = |body: &str, parts: &[&str]| {
        let source = format!("def f(x: Tensor) -> Tensor:\n{body}\n    return x\n");
        let error =
            dynamic(&source, &[counted(4, 5)], &["x:0=n"]).err().unwrap_or_else(|| panic!("{source}"));
        let text = error.render();
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    };
    let equal =
        ["E016", "whether `n == 4`, which is not the same for all sizes", "works without `x:0=n`", "line 2"];
    refused("    if x.size(0) == 4:\n        x = x + 1", &equal);
    let unequal = ["E016", "whether `n == 3`", "the export works with `x:0=n:4..`"];
    refused("    if x.size(0) == 3:\n        x = x + 1", &unequal);
    refused(
        "    x = x + torch.ones([4, 1])",
        &["with other sizes, `n` = 8, the program fails", "must match"],
    );
    refused("    x = x * len(str(x.shape))", &["E016", "`aten::str` needs a number"]);
    let error = dynamic("def f(x: Tensor) -> Tensor:\n    return x\n", &[counted(4, 5)], &["y:0=n"]).err();
    assert_eq!(error.expect("an unknown argument").code, "X0003");
}

/// A stated range is that of the program, or the error has the range that is. A bound that is not stated follows.
#[test]
fn stated_ranges_are_not_narrowed() {
    let source = "
def f(x: Tensor, y: Tensor) -> Tensor:
    if x.size(0) > 3:
        y = y + 1
    if x.size(0) * 1 <= 50:
        y = y * 2
    return x.sum() + y
";
    let example = [counted(4, 5), counted(4, 6)];
    let error = dynamic(source, &example, &["x:0=batch:1..64"]).err().unwrap();
    assert_eq!(error.code, "E016");
    let wanted = [
        "the size `batch` (dimension 0 of `x`) varies from 1 to 64 by the request, and the program needs it from 4 to 50",
        "`batch > 3`",
        "line 3, in f\n    if x.size(0) > 3:",
        "`batch <= 50`",
        "line 5",
        "The export works with `x:0=batch:4..50`",
    ];
    wanted.iter().for_each(|part| assert!(error.message.contains(part), "{part}: {}", error.message));
    for works in ["x:0=batch:4..50", "x:0=batch", "x:0=batch:5.."] {
        let exported = dynamic(source, &example[..], &[works]);
        match works {
            "x:0=batch:5.." => assert!(exported.is_err(), "the example is 4"),
            _ => {
                let exported = exported.unwrap();
                let ranges = &exported.model().range_constraints;
                assert_eq!((ranges["s0"].min, ranges["s0"].max), (Some(4), Some(50)), "{works}");
            }
        }
    }
}

/// Sizes that must be equal have one name.
#[test]
fn equal_sizes_need_one_name() {
    let source =
        "def f(x: Tensor, y: Tensor):\n    if x.size(0) == y.size(0):\n        x = x + 1\n    return x, y\n";
    let example = [counted(4, 5), counted(4, 6)];
    let error = dynamic(source, &example, &["x:0=n", "y:0=m"]).err().unwrap();
    assert!(error.message.contains("the export works with one name, `y:0=n`"), "{error}");
    assert!(dynamic(source, &example, &["x:0=n", "y:0=n"]).is_ok());
    let source = "def f(x: Tensor, y: Tensor):\n    return x + y[:, :1]\n";
    let error = dynamic(source, &example, &["x:0=n", "y:0=m"]).err().unwrap();
    assert!(error.message.contains("with other sizes, `m` = 9, `n` = 8, the program fails"), "{error}");
}

/// A buffer that the program updates is updated by calls of the exported program.
#[test]
fn buffers_are_updated() {
    let session = session();
    let program =
        session.load_exported(concat!(env!("CARGO_MANIFEST_DIR"), "/../export/tests/data/layers.pt2"));
    let module = program.unwrap().to_module().unwrap();
    let x = counted(2, 3);
    let exported =
        ExportedProgram::from_entry(&module.entry("forward").unwrap(), std::slice::from_ref(&x), &[])
            .unwrap();
    let count = |program: &ExportedProgram| program.tensor("count").unwrap().item().unwrap().to_i64();
    let before = count(&exported);
    exported.call(std::slice::from_ref(&x), &[]).unwrap();
    exported.call(&[x], &[]).unwrap();
    assert_eq!(count(&exported), before + 2);
}

/// Numbers that sizes and contents determine are outputs, also within containers.
#[test]
fn numbers_among_the_results_are_symbolic() {
    let source = "
def f(x: Tensor) -> Tuple[Tensor, List[int], int]:
    m = x[x > 0]
    return m, [m.numel(), 3], m.size(0) + x.nonzero()[1:].size(0)
";
    let examples = [tensor(&[1.0, -2.0, 0.5], &[3]), tensor(&[1.0, 2.0, 0.5, 4.0], &[4])];
    let session = session();
    let entry = entry(&session, source);
    let options = ExportOptions { dynamic: vec!["x:0=n".parse().unwrap()], ..ExportOptions::default() };
    let exported = ExportedProgram::from_entry_with(&entry, &examples[..1], &[], &options).unwrap();
    let again = session.load_exported_bytes(&exported.to_bytes(FileVersion::Torch26).unwrap()).unwrap();
    for example in &examples {
        let args = std::slice::from_ref(example);
        let (want, got) = (entry.call(args, &[]).unwrap(), again.call(args, &[]).unwrap());
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
    let one = "def f(x: Tensor) -> int:\n    return x[x > 0].numel()\n";
    let exported = export(one, &examples[..1]).unwrap();
    assert_eq!(exported.call(&[tensor(&[1.0, 2.0, -1.0], &[3])], &[]).unwrap().as_int(), Some(2));
}

/// A constant truth value or string is not an output in files of PyTorch 2.6.
#[test]
fn constant_outputs_need_a_version() {
    let exported = export("def f(x: Tensor):\n    return x + 1, True\n", &[tensor(&[1.0], &[1])]).unwrap();
    assert_eq!(exported.to_bytes(FileVersion::Torch26).unwrap_err().code, "E015");
    assert!(exported.to_bytes(FileVersion::Torch28).is_ok());
}

/// PyTorch 2.6 reads a `while_loop` and refuses to call it, and does not read numbers that vary from call to call.
#[test]
fn files_have_what_their_version_runs() {
    let x = tensor(&[1.0, 2.0], &[2]);
    let loops = "def f(x: Tensor):\n    while bool(x.sum() < 10):\n        x = x * 2\n    return x\n";
    let cases = [
        (export(loops, std::slice::from_ref(&x)).unwrap(), "the operator `while_loop`", "node `while_loop`"),
        (
            exported_with_number(&x),
            "the number `n` as an input",
            "field `graph_module.signature.input_specs[1]`",
        ),
    ];
    for (program, what, place) in cases {
        let error = program.to_bytes(FileVersion::Torch26).unwrap_err();
        assert_eq!(error.code, "E015");
        assert!(error.message.contains(what) && error.message.contains(place), "{error}");
        let again = session().load_exported_bytes(&program.to_bytes(FileVersion::Torch28).unwrap()).unwrap();
        assert!(again.to_bytes(FileVersion::Torch215).is_ok());
    }
}

/// A program whose second argument is a number that varies.
fn exported_with_number(x: &IValue) -> ExportedProgram {
    let source = "def f(x: Tensor, n: Tensor):\n    return x * n\n";
    let one = IValue::Tensor(Tensor::from_vec(vec![3i64], &[]).unwrap());
    let mut model = export(source, &[x.clone(), one]).unwrap().model().clone();
    let sym = Argument::SymInt(Sym::Name("n".to_owned()));
    let graph = &mut model.module.graph;
    graph.inputs[1] = sym.clone();
    graph.tensor_values.shift_remove("n");
    graph.sym_int_values.insert("n".to_owned(), SymInt::Int(3));
    for input in graph.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
        if input.arg.name() == Some("n") {
            input.arg = sym.clone();
        }
    }
    model.module.signature.inputs[1] = InputSpec::UserInput { arg: sym };
    ExportedProgram::new(&session(), model).unwrap()
}

/// Attributes that the program replaces keep apart from each other and from results with their former tensors.
#[test]
fn replaced_buffers_do_not_share_memory_with_results() {
    let source = "
class M(Module):
    __parameters__ = []
    __buffers__ = ['b', 'c']
    b : Tensor
    c : Tensor
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        t = self.b
        self.b = self.c
        self.c = t
        u = self.c
        self.c = u * 2
        u.add_(10)
        return self.b + x, t, self.c
";
    let session = session();
    let program = session.compile_source(source, "m.py").unwrap();
    let make = || {
        let class = Type::class(Symbol::new("__torch__.M"), 0);
        let object = Object::new(class, vec![tensor(&[1.0], &[1]), tensor(&[5.0], &[1])]);
        program.with_module(object, "m").unwrap().entry("forward").unwrap()
    };
    let x = [tensor(&[0.5], &[1])];
    for in_place in [false, true] {
        let (own, other) = (make(), make());
        let options = ExportOptions { in_place, ..ExportOptions::default() };
        let exported = ExportedProgram::from_entry_with(&other, &x, &[], &options).unwrap();
        for _ in 0..3 {
            let (want, got) = (own.call(&x, &[]).unwrap(), exported.call(&x, &[]).unwrap());
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{in_place}");
        }
    }
}

/// Checks of numbers that are only known at run time are nodes.
#[test]
fn checks_of_numbers_are_nodes() {
    let source = "
def f(x: Tensor, n: Tensor) -> Tensor:
    k = int(n.item())
    torch.sym_constrain_range_for_size(k, min=None, max=None)
    torch.sym_constrain_range(k, min=1, max=4)
    return torch.zeros([k]) + x
";
    let numbers = |n: i64| [tensor(&[1.0], &[1]), IValue::Tensor(Tensor::from_vec(vec![n], &[]).unwrap())];
    let exported = export(source, &numbers(3)).unwrap();
    let again = session().load_exported_bytes(&exported.to_bytes(FileVersion::Torch26).unwrap()).unwrap();
    let size = |n| again.call(&numbers(n), &[]).map(|result| result.as_tensor().unwrap().numel());
    assert_eq!(size(4).unwrap(), 4);
    for n in [0, 5] {
        let error = size(n).unwrap_err();
        assert!(error.message.contains(&format!("Invalid value range for {n} between [1, 4]")), "{error}");
    }
}
