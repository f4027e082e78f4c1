//! Modules that an embedder builds: classes from source in several texts, objects with the embedder's values.

use flambeau::ir::module::AttributeKind;
use flambeau::ir::value::Object;
use flambeau::ir::{Source, Symbol, Type};
use flambeau::{IValue, Session, Tensor, frontend::NativeResolver};
use std::sync::Arc;

const INNER: &str = "class Inner(Module):\n    __parameters__ = [\"weight\"]\n    __buffers__ = [\"mean\"]\n    weight : Tensor\n    \
                     mean : Tensor\n    def forward(self, x):\n        return x * self.weight + self.mean\n";
const OUTER: &str = "class Outer(Module):\n    def forward(self, x):\n        return getattr(self, \"0\")(x) + offset(self.n)\n    n : \
                     int\n    __annotations__[\"0\"] = Inner\n\ndef offset(n: int) -> int:\n    assert n > 0\n    return n\n";

fn object(name: &str, slots: Vec<IValue>) -> Object {
    Object::new(Type::class(Symbol::new(&format!("__torch__.{name}")), 0), slots)
}

#[test]
fn a_module_is_built_from_texts_and_values() {
    let session = Session::standard().unwrap();
    let at = |name: &str, text: &str, first_line| {
        Arc::new(Source { name: name.into(), text: text.into(), first_line, origin: None })
    };
    let sources = [at("inner.py", INNER, 10), at("outer.py", OUTER, 20)];
    let program = session.compile_sources(&sources, &NativeResolver).unwrap();
    let tensor = |x: f32| IValue::Tensor(Tensor::from_slice(&[x], &[1]).unwrap());
    let inner = object("Inner", vec![tensor(2.0), tensor(1.0)]);
    let outer = object("Outer", vec![IValue::Int(5), IValue::Object(inner.clone())]);
    let built = program.with_module(outer.clone(), "outer").unwrap();
    let module = built.module().unwrap();
    let kinds: Vec<AttributeKind> =
        program.object(inner.clone()).attributes().iter().map(|(a, _)| a.kind).collect();
    assert_eq!(kinds, [AttributeKind::Parameter, AttributeKind::Buffer]);
    assert_eq!(module.named_parameters().iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["0.weight"]);
    let result = built.entry("forward").unwrap().call(&[tensor(3.0)], &[]).unwrap();
    assert_eq!(result.as_tensor().unwrap().to_vec::<f32>().unwrap(), [12.0]);

    let method = program.method(&inner, "forward").unwrap();
    assert_eq!(
        method.call(&[tensor(1.0)], &[]).unwrap().as_tensor().unwrap().to_vec::<f32>().unwrap(),
        [3.0]
    );
    assert!(program.method(&inner, "backward").is_err());
    assert!(method.optimized("default").unwrap().to_string().contains("aten::mul"));

    module.set("n", IValue::Int(-1)).unwrap();
    let error = built.entry("forward").unwrap().call(&[tensor(3.0)], &[]).unwrap_err();
    assert!(error.render().contains("\"outer.py\", line 27"), "{}", error.render());
    assert!(program.with_module(object("Outer", vec![]), "outer").is_err(), "slots are missing");
    assert!(program.with_module(object("Absent", vec![]), "outer").is_err());
}
