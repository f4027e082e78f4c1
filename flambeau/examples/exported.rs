//! Reads, changes and writes an exported program: a function that also writes to its argument is exported to a file, the program
//! of the file is changed (`relu` becomes `silu`, and a node is added), verified, printed, called, decomposed to operators of core
//! ATen, and written for PyTorch 2.9.
//!
//! Run: `cargo run --release -p flambeau --example exported`

use flambeau::export::model::{Argument, NamedArgument, NodeMetadata, OutputSpec};
use flambeau::export::{FileVersion, GraphBuilder, print};
use flambeau::{DecompositionTable, ExportOptions, ExportedProgram, IValue, Session, Tensor};

const SOURCE: &str = "
def f(x: Tensor) -> Tensor:
    y = torch.relu(x) + 1
    x.mul_(2)
    return y
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    let example = |rows: i64| -> Result<IValue, flambeau::Error> {
        let values = (0..2 * rows).map(|i| i as f32 - 2.0).collect();
        Ok(IValue::Tensor(Tensor::from_vec::<f32>(values, &[rows, 2])?))
    };
    let folder = std::env::temp_dir().join(format!("flambeau-exported-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;

    // Export: the function runs on an example, and the first size of `x` may vary.
    let entry = session.compile_source(SOURCE, "f.py")?.entry("f")?;
    let options = ExportOptions { dynamic: vec!["x:0=batch:2..64".parse()?], ..ExportOptions::default() };
    let exported = ExportedProgram::from_entry_with(&entry, &[example(2)?], &[], &options)?;
    exported.save(folder.join("f.pt2"), FileVersion::default())?;

    // Read.
    let read = session.load_exported(folder.join("f.pt2"))?;

    // Change: the model is plain data. Values keep their names and metadata, since both operators return a tensor like `x`.
    let mut model = read.model().clone();
    for node in &mut model.module.graph.nodes {
        if node.target == "torch.ops.aten.relu.default" {
            node.target = "torch.ops.aten.silu.default".to_owned();
        }
    }

    // Add a node: its result has a new name, and the metadata of its operand. It becomes the first result of a call. The outputs of
    // a graph begin with the new contents of buffers and arguments, here with that of `x`, so the signature tells which output
    // is a result.
    let outputs = &mut model.module.signature.outputs;
    let at = outputs.iter().position(|output| matches!(output, OutputSpec::UserOutput { .. }));
    let at = at.ok_or("the program has a result")?;
    let Argument::Tensor(sum) = model.module.graph.outputs[at].clone() else {
        return Err("the result is a tensor".into());
    };
    let mut builder = GraphBuilder::of(model.module.graph);
    let name = builder.node_name("square");
    let meta = builder.graph.tensor_values[&sum].clone();
    builder.define(&name, meta);
    let operand = NamedArgument { name: "self".to_owned(), arg: Argument::Tensor(sum), kind: None };
    let result = Argument::Tensor(name.clone());
    let target = "torch.ops.aten.square.default";
    builder.node(Some(name), target, vec![operand], vec![result.clone()], NodeMetadata::default());
    builder.graph.outputs[at] = result.clone();
    outputs[at] = OutputSpec::UserOutput { arg: result };
    model.module.graph = builder.graph;

    // Verify and lower: an error names the node and the broken rule.
    let changed = ExportedProgram::new(&session, model)?;
    println!("{}", print::graph_text(changed.model(), session.registry())?);
    println!("{:?}", changed.call(&[example(3)?], &[])?);

    // Decompose: `silu` and `square` are not operators of core ATen.
    let core = changed.run_decompositions(&DecompositionTable::core_aten(&session)?)?;
    println!("{}", print::graph_text(core.model(), session.registry())?);

    // Write: the file is replaced atomically.
    core.save(folder.join("core.pt2"), FileVersion::Torch29)?;
    println!("{} bytes", std::fs::metadata(folder.join("core.pt2"))?.len());
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
