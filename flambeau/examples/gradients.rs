//! Gradients: a call whose arguments require gradients is recorded; the record gives the gradients of its inputs.
//!
//! Run: `cargo run --release -p flambeau --example gradients`

use flambeau::{IValue, Session, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    let source = "def loss(w: Tensor, x: Tensor):\n    return ((w * x).tanh() - 1.0).pow(2).sum()\n";
    let program = session.compile_source(source, "loss.py")?;

    let w = Tensor::from_slice(&[0.1_f32, 0.2, 0.3], &[3])?;
    w.set_requires_grad(true);
    let x = Tensor::from_slice(&[1.0_f32, -1.0, 2.0], &[3])?;

    let loss = program.entry("loss")?.call(&[IValue::Tensor(w.clone()), IValue::Tensor(x)], &[])?;
    let loss = loss.as_tensor().expect("the function returns a tensor").clone();

    let seed = Tensor::from_element(1.0_f32)?;
    let gradients = session.gradients(&[(loss.clone(), seed)], &[w], &mut session.host())?;
    println!("loss {}", IValue::Tensor(loss));
    for gradient in gradients.into_iter().flatten() {
        println!("d loss / d w = {}", IValue::Tensor(gradient));
    }
    Ok(())
}
