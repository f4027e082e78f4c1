//! Gradient histories are freed with the results of a program: no saved tensor keeps its own history alive.

use flambeau::exec::Host;
use flambeau::{Execution, IValue, Session, Tensor};

/// Each function returns tensors that a history saved or that have a history. Operators save their own results, lists,
/// and operands that are about to be overwritten.
const PROGRAMS: &str = "
def outputs():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    return [w, torch.exp(w), torch.tanh(w), torch.sigmoid(w), torch.softmax(w, 0), torch.sqrt(w)]

def in_place():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    x = (w * 2).exp_()
    y = x.clone().tanh_()
    z = y.clone()
    z[0].exp_()
    return [w, x, y, z]

def lists():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    parts = torch.stack([w, w.exp()]).unbind(0)
    return [w, torch.cat(parts), parts[0], parts[1]]

def tuples():
    w = torch.tensor([[0.5, 1.0], [2.0, 3.0]], requires_grad=True)
    values, _ = torch.max(w, 1)
    return [w, values, torch.logsumexp(w, 1)]

def gathers():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    torch.exp(w).sum().backward()
    grad = w.grad
    assert grad is not None
    return [w, grad]

def gathers_and_writes():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    torch.exp(w).sum().backward()
    grad = w.grad
    assert grad is not None
    grad.mul_(w)
    return [w, grad]

def asked():
    w = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    found = torch.autograd.grad([torch.exp(w).sum()], [w])[0]
    assert found is not None
    return [w, found]
";

#[test]
fn dropping_results_frees_their_history() {
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let session = Session::builder().standard().execution(execution).build().expect("consistent");
        let program = session.compile_source(PROGRAMS, "histories.py").expect("compiles");
        for name in ["outputs", "in_place", "lists", "tuples", "gathers", "gathers_and_writes", "asked"] {
            let mut host = Host::default();
            host.set_tape(Some(session.tape().expect("reads")));
            let entry = program.entry(name).expect("there");
            let results = entry.call_on(&[], &[], &mut host).expect("runs");
            let IValue::List(list) = &results else { panic!("{name} gives a list") };
            let tensors: Vec<Tensor> = list.read().iter().filter_map(|v| v.as_tensor().cloned()).collect();
            let storages: Vec<_> = tensors.iter().map(|t| t.storage().clone()).collect();
            let own = |i: usize| storages.iter().filter(|s| s.ptr_eq(&storages[i])).count();
            drop((results, tensors, host));
            for (i, storage) in storages.iter().enumerate() {
                assert_eq!(storage.ref_count(), own(i), "{execution:?} {name}: something holds result {i}");
            }
        }
    }
}
