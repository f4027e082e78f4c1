//! Reads, changes and writes an exported program: a function is exported, `relu` becomes `silu`, and the changed program is
//! verified, printed, called and written for PyTorch 2.9.
//!
//! Run: `cargo run --release -p flambeau --example exported`

use flambeau::export::{FileVersion, print};
use flambeau::{ExportOptions, ExportedProgram, IValue, Session, Tensor};

const SOURCE: &str = "
def f(x: Tensor) -> Tensor:
    return torch.relu(x) + 1
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    let example = |rows: i64| -> Result<IValue, flambeau::Error> {
        let values = (0..2 * rows).map(|i| i as f32 - 2.0).collect();
        Ok(IValue::Tensor(Tensor::from_vec::<f32>(values, &[rows, 2])?))
    };

    // Export: the function runs on an example, and the first size of `x` may vary.
    let entry = session.compile_source(SOURCE, "f.py")?.entry("f")?;
    let options = ExportOptions { dynamic: vec!["x:0=batch:2..64".parse()?], ..ExportOptions::default() };
    let exported = ExportedProgram::from_entry_with(&entry, &[example(2)?], &[], &options)?;
    let file = exported.to_bytes(FileVersion::default())?;

    // Read: `load_exported` takes a path.
    let read = session.load_exported_bytes(&file)?;

    // Change: the model is plain data. Values keep their names and metadata, since both operators return a tensor like `x`.
    let mut model = read.model().clone();
    for node in &mut model.module.graph.nodes {
        if node.target == "torch.ops.aten.relu.default" {
            node.target = "torch.ops.aten.silu.default".to_owned();
        }
    }

    // Verify and lower: an error names the node and the broken rule.
    let changed = ExportedProgram::new(&session, model)?;
    println!("{}", print::graph_text(changed.model(), session.registry())?);
    println!("{:?}", changed.call(&[example(3)?], &[])?);

    // Write; `save` replaces a file atomically.
    let written = changed.to_bytes(FileVersion::Torch29)?;
    println!("{} bytes", written.len());
    Ok(())
}
