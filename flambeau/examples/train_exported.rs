//! Trains an exported program: a module with parameters and a buffer is exported, learns a linear function with SGD, and is written
//! with its new parameters.
//!
//! Run: `cargo run --release -p flambeau --example train_exported`. It fails if the program has not learned the function.

use flambeau::exec::tape::BackwardOptions;
use flambeau::export::FileVersion;
use flambeau::export::model::InputSpec;
use flambeau::ir::value::Object;
use flambeau::ir::{Symbol, Type};
use flambeau::{ExportedProgram, IValue, Optimizer, Session, Tensor, UpdateRule};

const SOURCE: &str = "
class Linear(Module):
    __parameters__ = ['weight', 'bias']
    __buffers__ = ['calls']
    weight : Tensor
    bias : Tensor
    calls : Tensor
    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return torch.matmul(x, self.weight) + self.bias

def loss(y: Tensor, wanted: Tensor) -> Tensor:
    return F.mse_loss(y, wanted)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    let program = session.compile_source(SOURCE, "linear.py")?;
    let zeros =
        |sizes: &[i64]| Tensor::from_slice(&vec![0.0_f32; sizes.iter().product::<i64>() as usize], sizes);
    let attributes = [zeros(&[2])?, zeros(&[])?, zeros(&[])?].map(IValue::Tensor);
    let object = Object::new(Type::class(Symbol::new("__torch__.Linear"), 0), attributes.to_vec());
    let forward = program.with_module(object, "linear")?.entry("forward")?;
    // y = 2 a - 3 b + 1
    let points: Vec<[f32; 2]> = (0..16).map(|i| [(i % 4) as f32 / 4.0, (i / 4) as f32 / 4.0]).collect();
    let wanted: Vec<f32> = points.iter().map(|[a, b]| 2.0 * a - 3.0 * b + 1.0).collect();
    let x = IValue::Tensor(Tensor::from_slice(points.as_flattened(), &[16, 2])?);
    let wanted = IValue::Tensor(Tensor::from_slice(&wanted, &[16])?);

    let exported = ExportedProgram::from_entry(&forward, std::slice::from_ref(&x), &[])?;

    // The signature tells which tensors of the state dict are parameters. They are the program's own tensors, not copies.
    let parameters = exported.signature().inputs.iter().filter_map(|input| match input {
        InputSpec::Parameter { target, .. } => Some((target.clone(), exported.tensor(target)?.clone())),
        _ => None,
    });
    let parameters: Vec<(String, Tensor)> = parameters.collect();
    parameters.iter().for_each(|(_, parameter)| parameter.set_requires_grad(true));

    // A call is recorded for gradients since parameters require one. The buffer is updated by each call.
    let loss = program.entry("loss")?;
    let mut optimizer = Optimizer::new(&session, parameters.clone(), UpdateRule::sgd(0.5))?;
    let mut last = f32::MAX;
    for _ in 0..200 {
        optimizer.zero_grad();
        let mut host = session.host();
        let y = exported.call_on(std::slice::from_ref(&x), &[], &mut host)?;
        let value = loss.call_on(&[y, wanted.clone()], &[], &mut host)?;
        let value = value.as_tensor().ok_or("the loss is a tensor")?.clone();
        last = value.to_vec::<f32>()?[0];
        let seed = (value, Tensor::from_element(1.0_f32)?);
        session.backward(&[seed], BackwardOptions::default(), &mut host)?;
        optimizer.step()?;
    }
    let calls = exported.tensor("calls").ok_or("the program has a buffer")?.to_vec::<f32>()?[0];
    println!("loss {last:.6} after {calls} calls");

    // A file has the current content of the tensors.
    let bytes = exported.to_bytes(FileVersion::default())?;
    let again = session.load_exported_bytes(&bytes)?;
    let weight = again.tensor("weight").ok_or("the program has a weight")?.to_vec::<f32>()?;
    println!("weight {weight:?}");
    if last < 1e-3 && calls == 200.0 {
        Ok(())
    } else {
        Err("the program has not learned the function".into())
    }
}
