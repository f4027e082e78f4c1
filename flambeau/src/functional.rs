//! Derivatives of an entry as functions of its inputs.
//!
//! Each function calls the entry on copies of the inputs that share their memory and require gradients, so nothing is
//! accumulated and the caller's tensors stay as they are. `wrt` lists positions of tensors among the inputs.
//!
//! [`Entry::jvp`] takes two backward passes: the gradients of the inputs are linear in those of the results, and the
//! derivative of that linear map is the forward derivative.

use crate::error::Error;
use crate::program::Entry;
use crate::session::Session;
use flambeau_exec::Host;
use flambeau_exec::tape::{self, BackwardOptions};
use flambeau_ir::IValue;
use flambeau_tensor::Tensor;

/// A recorded call.
struct Recorded {
    session: Session,
    host: Host,
    result: IValue,
    /// The inputs that derivatives are taken with respect to.
    leaves: Vec<Tensor>,
}

/// Options of a backward pass that is itself differentiated.
const RETAIN_AND_RECORD: BackwardOptions = BackwardOptions { retain_graph: true, create_graph: true };

impl Recorded {
    fn new(entry: &Entry, inputs: &[IValue], wrt: &[usize]) -> Result<Recorded, Error> {
        let mut inputs = inputs.to_vec();
        let mut leaves = Vec::with_capacity(wrt.len());
        for (i, &at) in wrt.iter().enumerate() {
            // An input may be named twice.
            if let Some(first) = wrt[..i].iter().position(|other| *other == at) {
                leaves.push(Tensor::clone(&leaves[first]));
                continue;
            }
            let tensor = inputs.get(at).and_then(IValue::as_tensor);
            let tensor = tensor.ok_or_else(|| Error::misuse(format!("input {at} is not a tensor")))?;
            if !tensor.dtype().is_floating() && !tensor.dtype().is_complex() {
                return Err(Error::misuse(format!(
                    "input {at} is a tensor of {}; only tensors of floating point and complex dtype can require gradients",
                    tensor.dtype()
                )));
            }
            let leaf = tensor.alias();
            leaf.set_requires_grad(true);
            inputs[at] = IValue::Tensor(leaf.clone());
            leaves.push(leaf);
        }
        let session = entry.session().clone();
        let mut host = session.host();
        let result = entry.call_on(&inputs, &[], &mut host)?;
        Ok(Recorded { session, host, result, leaves })
    }

    /// Returns the single number that the entry computed, and its gradient.
    fn number(&self) -> Result<(Tensor, Tensor), Error> {
        let number = self.result.as_tensor().cloned();
        let number =
            number.ok_or_else(|| Error::misuse("grad can be implicitly created only for scalar outputs"))?;
        let one = tape::implicit_gradient(&number).map_err(|error| Error::misuse(error.to_string()))?;
        Ok((number, one))
    }

    /// Pairs the tensors of the result with gradients. Results that require no gradient take none.
    fn seeded(&self, cotangents: &[Tensor]) -> Result<Vec<(Tensor, Tensor)>, Error> {
        let mut results = Vec::new();
        self.result.visit_tensors(|t| results.push(t.clone()));
        if results.len() != cotangents.len() {
            let (n, m) = (results.len(), cotangents.len());
            return Err(Error::misuse(format!("{m} gradients were given for {n} results")));
        }
        for (i, (result, grad)) in results.iter().zip(cotangents).enumerate() {
            if result.sizes() != grad.sizes() {
                return Err(Error::misuse(format!(
                    "the gradient of result {i} has sizes {:?}; expected {:?}",
                    grad.sizes(),
                    result.sizes()
                )));
            }
        }
        let pairs = results.into_iter().zip(cotangents.iter().cloned());
        Ok(pairs.filter(|(result, _)| result.requires_grad()).collect())
    }

    /// Returns the gradients of the leaves.
    fn gradients(
        &mut self,
        outputs: &[(Tensor, Tensor)],
        mode: BackwardOptions,
    ) -> Result<Vec<Tensor>, Error> {
        let leaves = self.leaves.clone();
        self.gradients_of(outputs, &leaves, mode)
    }

    /// Returns gradients; zeros where the outputs do not depend on an input.
    fn gradients_of(
        &mut self,
        outputs: &[(Tensor, Tensor)],
        inputs: &[Tensor],
        mode: BackwardOptions,
    ) -> Result<Vec<Tensor>, Error> {
        let outputs: Vec<_> = outputs.iter().filter(|(t, _)| t.requires_grad()).cloned().collect();
        let found = self.session.gradients_with(&outputs, inputs, mode, &mut self.host)?;
        found
            .into_iter()
            .zip(inputs)
            .map(|(grad, input)| grad.map_or_else(|| zeros_like(input), Ok))
            .collect()
    }
}

fn zeros_like(tensor: &Tensor) -> Result<Tensor, Error> {
    Ok(Tensor::zeros(tensor.sizes(), tensor.dtype())?)
}

impl Entry {
    /// Returns the gradients of the number that the entry computes, with respect to inputs.
    ///
    /// # Errors
    /// As [`Entry::call`]; `X0003` if an input is not a tensor of floating-point or complex numbers, or the result not
    /// one number; `X0002` if an operator has no derivative.
    pub fn grad(&self, inputs: &[IValue], wrt: &[usize]) -> Result<Vec<Tensor>, Error> {
        Ok(self.value_and_grad(inputs, wrt)?.1)
    }

    /// As [`Entry::grad`], with the number.
    ///
    /// # Errors
    /// As [`Entry::grad`].
    pub fn value_and_grad(&self, inputs: &[IValue], wrt: &[usize]) -> Result<(Tensor, Vec<Tensor>), Error> {
        let mut recorded = Recorded::new(self, inputs, wrt)?;
        let (value, one) = recorded.number()?;
        let grads = recorded.gradients(&[(value.clone(), one)], BackwardOptions::default())?;
        Ok((value.alias(), grads))
    }

    /// Returns the result of the entry and the product of `cotangents`, one per tensor of the result, with its
    /// Jacobian: the gradients of the inputs. The tensors of the result still require gradients, but their history is released.
    ///
    /// # Errors
    /// As [`Entry::grad`]; `X0003` if number or sizes of the cotangents are not those of the results.
    pub fn vjp(
        &self,
        inputs: &[IValue],
        wrt: &[usize],
        cotangents: &[Tensor],
    ) -> Result<(IValue, Vec<Tensor>), Error> {
        let mut recorded = Recorded::new(self, inputs, wrt)?;
        let outputs = recorded.seeded(cotangents)?;
        let grads = recorded.gradients(&outputs, BackwardOptions::default())?;
        Ok((recorded.result, grads))
    }

    /// Returns the result of the entry and the product of its Jacobian with `tangents`, one per input in `wrt`: the
    /// derivative of each tensor of the result in that direction. The result is as that of [`Entry::vjp`].
    ///
    /// # Errors
    /// As [`Entry::vjp`].
    pub fn jvp(
        &self,
        inputs: &[IValue],
        wrt: &[usize],
        tangents: &[Tensor],
    ) -> Result<(IValue, Vec<Tensor>), Error> {
        let mut recorded = Recorded::new(self, inputs, wrt)?;
        let mut seeds = Vec::new();
        let mut failure = None;
        recorded.result.visit_tensors(|t| match zeros_like(t) {
            Ok(zeros) => {
                zeros.set_requires_grad(zeros.dtype().is_floating() || zeros.dtype().is_complex());
                seeds.push(zeros);
            }
            Err(error) => failure = Some(error),
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let outputs = recorded.seeded(&seeds)?;
        let grads = recorded.gradients(&outputs, RETAIN_AND_RECORD)?;
        let products = paired(grads, tangents)?;
        let found = recorded.gradients_of(&products, &seeds, BackwardOptions::default())?;
        Ok((recorded.result, found))
    }

    /// Returns the number that the entry computes and the product of its Hessian with `vectors`, one per input in
    /// `wrt`.
    ///
    /// # Errors
    /// As [`Entry::grad`].
    pub fn hessian_vector(
        &self,
        inputs: &[IValue],
        wrt: &[usize],
        vectors: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let mut recorded = Recorded::new(self, inputs, wrt)?;
        let (value, one) = recorded.number()?;
        let grads = recorded.gradients(&[(value.clone(), one)], RETAIN_AND_RECORD)?;
        let products = paired(grads, vectors)?;
        let found = recorded.gradients(&products, BackwardOptions::default())?;
        Ok((value.alias(), found))
    }
}

/// Pairs gradients with vectors of the same sizes.
fn paired(grads: Vec<Tensor>, vectors: &[Tensor]) -> Result<Vec<(Tensor, Tensor)>, Error> {
    let same = grads.len() == vectors.len() && grads.iter().zip(vectors).all(|(g, v)| g.sizes() == v.sizes());
    if !same {
        let sizes: Vec<&[i64]> = grads.iter().map(Tensor::sizes).collect();
        return Err(Error::misuse(format!("expected one vector per input, of sizes {sizes:?}")));
    }
    Ok(grads.into_iter().zip(vectors.iter().cloned()).collect())
}
