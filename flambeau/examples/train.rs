//! Training: a network with one hidden layer learns to separate two interleaved half-moons, with AdamW.
//!
//! Run: `cargo run --release -p flambeau --example train`. It ends with the accuracy on points that were not trained on,
//! and fails below 98 %.

use flambeau::exec::tape::BackwardOptions;
use flambeau::{IValue, Optimizer, Session, Tensor, UpdateRule};

const SOURCE: &str = "
def scores(x, w1, b1, w2, b2):
    hidden = torch.tanh(torch.matmul(x, w1) + b1)
    return torch.matmul(hidden, w2) + b2

def loss(x, label, w1, b1, w2, b2):
    return F.cross_entropy(scores(x, w1, b1, w2, b2), label)

def accuracy(x, label, w1, b1, w2, b2):
    return (scores(x, w1, b1, w2, b2).argmax(1) == label).to(torch.float32).mean()
";

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    /// Returns a number between -1 and 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// Returns `n` points on the two half-moons with noise, and the half-moon of each.
fn moons(n: usize, numbers: &mut Numbers) -> Result<(Tensor, Tensor), Box<dyn std::error::Error>> {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let angle = std::f32::consts::PI * (numbers.next() + 1.0) / 2.0;
        let (x, y) =
            if i % 2 == 0 { (angle.cos(), angle.sin()) } else { (1.0 - angle.cos(), 0.5 - angle.sin()) };
        points.extend([x + 0.1 * numbers.next(), y + 0.1 * numbers.next()]);
        labels.push((i % 2) as i64);
    }
    Ok((Tensor::from_slice(&points, &[n as i64, 2])?, Tensor::from_slice(&labels, &[n as i64])?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::standard()?;
    let program = session.compile_source(SOURCE, "train.py")?;
    let (loss, accuracy) = (program.entry("loss")?, program.entry("accuracy")?);

    let mut numbers = Numbers(7);
    let mut parameters = Vec::new();
    for (name, sizes) in [("w1", &[2, 16][..]), ("b1", &[16]), ("w2", &[16, 2]), ("b2", &[2])] {
        let values: Vec<f32> = (0..sizes.iter().product::<i64>()).map(|_| 0.5 * numbers.next()).collect();
        let tensor = Tensor::from_slice(&values, sizes)?;
        tensor.set_requires_grad(true);
        parameters.push((name.to_owned(), tensor));
    }
    let weights: Vec<IValue> = parameters.iter().map(|(_, tensor)| IValue::Tensor(tensor.clone())).collect();
    let inputs = |(points, labels): &(Tensor, Tensor)| {
        let data = [IValue::Tensor(points.clone()), IValue::Tensor(labels.clone())];
        [&data[..], &weights].concat()
    };

    let (training, test) = (moons(256, &mut numbers)?, moons(256, &mut numbers)?);
    let mut optimizer = Optimizer::new(&session, parameters.clone(), UpdateRule::adamw(0.05))?;
    for step in 0..200 {
        optimizer.zero_grad();
        let mut host = session.host();
        let value = loss.call_on(&inputs(&training), &[], &mut host)?;
        let value = value.as_tensor().ok_or("the loss is a tensor")?.clone();
        session.backward(
            &[(value.clone(), Tensor::from_element(1.0_f32)?)],
            BackwardOptions::default(),
            &mut host,
        )?;
        optimizer.step()?;
        if step % 50 == 0 {
            println!("step {step}: loss {:.4}", value.to_vec::<f32>()?[0]);
        }
    }
    let share = accuracy.call(&inputs(&test), &[])?;
    let share = share.as_tensor().ok_or("the accuracy is a tensor")?.to_vec::<f32>()?[0];
    println!("accuracy on 256 other points: {:.1} %", 100.0 * share);
    if share < 0.98 { Err("the accuracy is below 98 %".into()) } else { Ok(()) }
}
