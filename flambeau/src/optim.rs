//! Optimizers: steps of gradient descent on named parameters.
//!
//! The update of a parameter is a TorchScript function, compiled and optimized like any program; it writes the parameter
//! in place. Gradients are those accumulated in the parameters, as PyTorch's `.grad`. The state has the names and meaning
//! of PyTorch's.

use crate::error::Error;
use crate::program::Entry;
use crate::session::Session;
use flambeau_exec::tape;
use flambeau_ir::IValue;
use flambeau_tensor::Tensor;

/// The rule by which a step changes a parameter, with the settings of PyTorch's optimizers of these names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpdateRule {
    /// Stochastic gradient descent with momentum.
    Sgd {
        /// The learning rate.
        lr: f64,
        /// The factor of the previous direction.
        momentum: f64,
        /// The part of the gradient that the momentum leaves out.
        dampening: f64,
        /// The factor of the parameter that is added to the gradient.
        weight_decay: f64,
        /// Whether the direction looks one step of momentum ahead.
        nesterov: bool,
    },
    /// Adam; AdamW if `decoupled`.
    Adam {
        /// The learning rate.
        lr: f64,
        /// The decay of the means of gradients and of their squares.
        betas: (f64, f64),
        /// Added to the root of the mean of squares.
        eps: f64,
        /// The factor of the parameter that is added to the gradient, or subtracted from the parameter.
        weight_decay: f64,
        /// Whether the weight decay applies to the parameter itself.
        decoupled: bool,
    },
}

impl UpdateRule {
    /// Gradient descent without momentum and decay.
    pub fn sgd(lr: f64) -> UpdateRule {
        UpdateRule::Sgd { lr, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }

    /// Adam with PyTorch's defaults.
    pub fn adam(lr: f64) -> UpdateRule {
        UpdateRule::Adam { lr, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, decoupled: false }
    }

    /// AdamW with PyTorch's defaults.
    pub fn adamw(lr: f64) -> UpdateRule {
        UpdateRule::Adam { lr, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.01, decoupled: true }
    }

    /// The names of the tensors in the state of a parameter.
    fn state(&self) -> &'static [&'static str] {
        match self {
            UpdateRule::Sgd { .. } => &["momentum_buffer"],
            UpdateRule::Adam { .. } => &["exp_avg", "exp_avg_sq"],
        }
    }

    fn function(&self) -> &'static str {
        match self {
            UpdateRule::Sgd { .. } => "sgd",
            UpdateRule::Adam { .. } => "adam",
        }
    }

    /// The arguments after parameter, gradient and state.
    fn arguments(&self, step: i64) -> Vec<IValue> {
        let numbers = |numbers: &[f64]| numbers.iter().map(|x| IValue::Float(*x)).collect::<Vec<_>>();
        let mut args = vec![IValue::Int(step)];
        match *self {
            UpdateRule::Sgd { lr, momentum, dampening, weight_decay, nesterov } => {
                args.extend(numbers(&[lr, momentum, dampening, weight_decay]));
                args.push(IValue::Bool(nesterov));
            }
            UpdateRule::Adam { lr, betas, eps, weight_decay, decoupled } => {
                args.extend(numbers(&[lr, betas.0, betas.1, eps, weight_decay]));
                args.push(IValue::Bool(decoupled));
            }
        }
        args
    }
}

const SOURCE: &str = "
def sgd(p: Tensor, grad: Tensor, buffer: Tensor, step: int, lr: float, momentum: float, dampening: float, decay: float, nesterov: bool):
    g = grad
    if decay != 0.0:
        g = g + p * decay
    if momentum != 0.0:
        if step == 1:
            buffer.copy_(g)
        else:
            buffer.mul_(momentum).add_(g, alpha=1.0 - dampening)
        g = g + buffer * momentum if nesterov else buffer
    p.add_(g, alpha=-lr)

def adam(p: Tensor, grad: Tensor, mean: Tensor, square: Tensor, step: int, lr: float, beta1: float, beta2: float, eps: float, decay: float, decoupled: bool):
    g = grad
    if decay != 0.0:
        if decoupled:
            p.mul_(1.0 - lr * decay)
        else:
            g = g + p * decay
    mean.lerp_(g, 1.0 - beta1)
    square.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    first = 1.0 - beta1 ** step
    second = 1.0 - beta2 ** step
    scale = (square.sqrt() / math.sqrt(second)) + eps
    p.addcdiv_(mean, scale, value=-(lr / first))
";

/// A trained parameter.
struct Parameter {
    name: String,
    tensor: Tensor,
    state: Vec<Tensor>,
    /// The number of steps that had a gradient.
    steps: i64,
}

/// An optimizer of named parameters, such as [`crate::Module::named_parameters`] returns.
pub struct Optimizer {
    session: Session,
    update: UpdateRule,
    entry: Entry,
    parameters: Vec<Parameter>,
}

impl Optimizer {
    /// Creates an optimizer of those parameters that require gradients.
    ///
    /// # Errors
    /// `X0002` if memory is exhausted.
    pub fn new(
        session: &Session,
        parameters: impl IntoIterator<Item = (String, Tensor)>,
        update: UpdateRule,
    ) -> Result<Optimizer, Error> {
        let entry = session.compile_source(SOURCE, "<optimizers>")?.entry(update.function())?;
        let trained = parameters.into_iter().filter(|(_, tensor)| tensor.requires_grad());
        let parameters = trained.map(|(name, tensor)| {
            let zeros = |_: &&str| Tensor::zeros(tensor.sizes(), tensor.dtype());
            let state = update.state().iter().map(zeros).collect::<Result<_, _>>()?;
            Ok(Parameter { name, tensor, state, steps: 0 })
        });
        let parameters = parameters.collect::<Result<_, Error>>()?;
        Ok(Optimizer { session: session.clone(), update, entry, parameters })
    }

    /// Removes the accumulated gradients, so that the next backward walk starts anew.
    pub fn zero_grad(&self) {
        self.parameters.iter().for_each(|p| tape::clear_accumulated_grad(&p.tensor));
    }

    /// Changes each parameter that has an accumulated gradient.
    ///
    /// # Errors
    /// `X0002` if a write fails.
    pub fn step(&mut self) -> Result<(), Error> {
        let mut host = self.session.host();
        host.set_grad_enabled(false);
        for p in &mut self.parameters {
            let Some(grad) = tape::accumulated_grad(&p.tensor) else { continue };
            p.steps += 1;
            let mut args = vec![IValue::Tensor(p.tensor.clone()), IValue::Tensor(grad)];
            args.extend(p.state.iter().cloned().map(IValue::Tensor));
            args.extend(self.update.arguments(p.steps));
            self.entry.call_on(&args, &[], &mut host)?;
        }
        Ok(())
    }

    /// Sets the rule of later steps, for example with another learning rate. The state of the steps so far is kept.
    ///
    /// # Errors
    /// `X0003` if the rule has another kind of state.
    pub fn set_update(&mut self, update: UpdateRule) -> Result<(), Error> {
        if update.function() != self.update.function() {
            return Err(Error::misuse("the state belongs to another kind of update"));
        }
        self.update = update;
        Ok(())
    }

    /// Returns the tensors of the state: `name.exp_avg` and so on, and the number of steps of each parameter as
    /// `name.step`.
    ///
    /// # Errors
    /// `X0002` if memory is exhausted.
    pub fn state_dict(&self) -> Result<Vec<(String, Tensor)>, Error> {
        let mut state = Vec::new();
        for p in &self.parameters {
            for (name, tensor) in self.update.state().iter().zip(&p.state) {
                state.push((format!("{}.{name}", p.name), tensor.clone()));
            }
            state.push((format!("{}.step", p.name), Tensor::from_element(p.steps)?));
        }
        Ok(state)
    }

    /// Copies a state that [`Optimizer::state_dict`] returned.
    ///
    /// # Errors
    /// `X0003` if a tensor is missing or has other sizes.
    pub fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<(), Error> {
        let find = |name: String| {
            let found = state.iter().find(|(n, _)| *n == name).map(|(_, tensor)| tensor);
            found.ok_or_else(|| Error::misuse(format!("the state has no tensor `{name}`")))
        };
        for p in &mut self.parameters {
            for (name, tensor) in self.update.state().iter().zip(&p.state) {
                let given = find(format!("{}.{name}", p.name))?;
                if given.sizes() != tensor.sizes() {
                    return Err(Error::misuse(format!(
                        "`{}.{name}` has sizes {:?}; expected {:?}",
                        p.name,
                        given.sizes(),
                        tensor.sizes()
                    )));
                }
                tensor.copy_(given)?;
            }
            let steps = find(format!("{}.step", p.name))?.to_vec::<i64>()?;
            p.steps = steps.first().copied().unwrap_or(0);
        }
        Ok(())
    }
}
