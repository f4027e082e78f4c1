//! Embeds Flambeau: compiles TorchScript source, calls a function with tensors, and reads the result.
//!
//! Run: `cargo run --release -p flambeau --example embed`

use flambeau::{IValue, Session, Tensor};

const SOURCE: &str = "
def normalize(x: Tensor, eps: float = 1e-5) -> Tensor:
    assert x.dim() > 0, 'a vector or matrix is expected'
    mean = x.mean()
    return (x - mean) / torch.sqrt(((x - mean) * (x - mean)).mean() + eps)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    // `session.load_archive("model.pt")` returns a program of the same type.
    let program = session.compile_source(SOURCE, "normalize.py")?;
    let entry = program.entry("normalize")?;
    println!("{}", entry.schema());

    let x = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[4])?;
    let y = entry.call(&[IValue::Tensor(x)], &[("eps", IValue::Float(0.0))])?;
    println!("{y}");

    // A run-time error of the program has its line.
    let scalar = IValue::Tensor(Tensor::from_element(3.0_f32)?);
    let error = entry.call(&[scalar], &[]).expect_err("the assertion fails");
    println!("{error}");
    Ok(())
}
