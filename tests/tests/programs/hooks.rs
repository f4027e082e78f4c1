//! Hooks of tensors, as in PyTorch: `tests/oracle/hooks.py`.

use flambeau::exec::Host;
use flambeau::exec::tape::BackwardOptions;
use flambeau::tensor::DType;
use flambeau::{Entry, IValue, Session, Tensor};
use std::sync::{Arc, Mutex};

/// The events of the programs, in the order of the walks.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn add(&self, event: impl Into<String>) {
        self.0.lock().unwrap().push(event.into());
    }

    fn show(&self, name: &str, tensor: Option<&Tensor>) {
        let text = tensor.map_or("none".to_owned(), |t| format!("{:?}", t.to_vec::<f64>().unwrap()));
        self.add(format!("{name} {text}"));
    }
}

/// A session, and functions that hooks and programs call.
struct Programs {
    session: Session,
    host: Host,
    source: flambeau::Program,
}

const SOURCE: &str = "
def times(x, by: float):
    return x * by

def plus(x, by: float):
    return x + by

def product(x, y):
    return x * y

def total(x):
    return x.sum()

def write(x, by: float):
    x.mul_(by)
    return x.sum()
";

impl Programs {
    fn new() -> Programs {
        let session = Session::standard().unwrap();
        let source = session.compile_source(SOURCE, "f.py").unwrap();
        let mut host = session.host();
        host.set_tape(Some(session.tape().unwrap()));
        Programs { session, host, source }
    }

    fn entry(&self, name: &str) -> Entry {
        self.source.entry(name).unwrap()
    }

    fn call(&mut self, name: &str, args: &[IValue]) -> Tensor {
        call(&self.entry(name), args, &mut self.host)
    }

    fn gradient(&mut self, of: &Tensor, input: &Tensor, create_graph: bool) -> Tensor {
        let ones = Tensor::full(of.sizes(), 1.0.into(), DType::F64).unwrap();
        let mode = BackwardOptions { retain_graph: true, create_graph };
        let outputs = [(of.clone(), ones)];
        let found = self.session.gradients_with(&outputs, std::slice::from_ref(input), mode, &mut self.host);
        found.unwrap().remove(0).unwrap()
    }

    fn backward(&mut self, of: &Tensor, retain_graph: bool) -> Result<(), String> {
        let ones = Tensor::full(of.sizes(), 1.0.into(), DType::F64).unwrap();
        let mode = BackwardOptions { retain_graph, create_graph: false };
        let done = self.session.backward(&[(of.clone(), ones)], mode, &mut self.host);
        done.map_err(|error| error.message)
    }
}

fn call(entry: &Entry, args: &[IValue], host: &mut Host) -> Tensor {
    entry.call_on(args, &[], host).unwrap().as_tensor().unwrap().clone()
}

fn of(tensor: &Tensor) -> IValue {
    IValue::Tensor(tensor.clone())
}

fn leaf() -> Tensor {
    let leaf = Tensor::from_slice(&[1.0, 2.0], &[2]).unwrap();
    leaf.set_requires_grad(true);
    leaf
}

fn grad_of(tensor: &Tensor) -> Option<Tensor> {
    Session::accumulated_gradient(tensor)
}

#[test]
fn hooks_get_and_replace_gradients_as_in_pytorch() {
    let events = Events::default();
    let mut programs = Programs::new();
    let noting = |name: &'static str| {
        let events = events.clone();
        move |grad: &Tensor, _: &mut Host| {
            events.show(name, Some(grad));
            Ok(None)
        }
    };
    let changing = |name: &'static str, entry: Entry, by: f64| {
        let events = events.clone();
        move |grad: &Tensor, host: &mut Host| {
            events.show(name, Some(grad));
            Ok(Some(call(&entry, &[of(grad), IValue::Float(by)], host)))
        }
    };

    events.add("# replaced gradients");
    let x = leaf();
    let of_x = Session::register_hook(&x, changing("x", programs.entry("times"), 2.0)).unwrap();
    let y = programs.call("times", &[of(&x), IValue::Float(3.0)]);
    Session::register_hook(&y, changing("y, first", programs.entry("plus"), 1.0)).unwrap();
    Session::register_hook(&y, noting("y, second")).unwrap();
    Session::retain_gradient(&y).unwrap();
    let z = programs.call("product", &[of(&y), of(&y)]);
    let z = programs.call("total", &[of(&z)]);
    let found = programs.gradient(&z, &x, false);
    events.show("gradient of x", Some(&found));
    let found = programs.gradient(&z, &y, false);
    events.show("gradient of y", Some(&found));
    events.show("retained", grad_of(&y).as_ref());
    programs.backward(&z, true).unwrap();
    events.show("accumulated", grad_of(&x).as_ref());
    events.show("retained", grad_of(&y).as_ref());
    of_x.remove();
    programs.backward(&z, false).unwrap();
    events.show("accumulated", grad_of(&x).as_ref());

    events.add("# writes in place");
    let x = leaf();
    let y = programs.call("times", &[of(&x), IValue::Float(1.0)]);
    Session::register_hook(&y, noting("before")).unwrap();
    Session::retain_gradient(&y).unwrap();
    programs.call("write", &[of(&y), IValue::Float(3.0)]);
    Session::register_hook(&y, noting("after")).unwrap();
    let z = programs.call("total", &[of(&y)]);
    programs.backward(&z, false).unwrap();
    events.show("retained", grad_of(&y).as_ref());
    events.show("accumulated", grad_of(&x).as_ref());

    events.add("# second order");
    let x = leaf();
    let y = programs.call("product", &[of(&x), of(&x)]);
    let (product, factor) = (programs.entry("product"), x.clone());
    let times_x =
        move |grad: &Tensor, host: &mut Host| Ok(Some(call(&product, &[of(grad), of(&factor)], host)));
    Session::register_hook(&y, times_x).unwrap();
    let z = programs.call("total", &[of(&y)]);
    let first = programs.gradient(&z, &x, true);
    events.show("first", Some(&first));
    let z = programs.call("total", &[of(&first)]);
    let second = programs.gradient(&z, &x, false);
    events.show("second", Some(&second));

    events.add("# refused");
    type Change = fn(&Tensor) -> Tensor;
    let changes: [Change; 2] =
        [|_| Tensor::zeros(&[], DType::F64).unwrap(), |grad| grad.to_dtype(DType::F32).unwrap()];
    for change in changes {
        let x = leaf();
        Session::register_hook(&x, move |grad, _| Ok(Some(change(grad)))).unwrap();
        let y = programs.call("times", &[of(&x), IValue::Float(2.0)]);
        events.add(programs.backward(&y, false).unwrap_err());
    }
    let plain = Tensor::zeros(&[1], DType::F64).unwrap();
    events.add(Session::register_hook(&plain, |_, _| Ok(None)).unwrap_err().message);
    events.add(Session::retain_gradient(&plain).unwrap_err().message);

    let recorded = include_str!("../../oracle/hooks.txt").replace("torch.FloatTensor", "float32");
    let recorded = recorded.replace("torch.DoubleTensor", "float64");
    assert_eq!(events.0.lock().unwrap().join("\n"), recorded.trim_end());
}
