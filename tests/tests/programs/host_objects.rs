//! Programs with objects of the embedding program, on a host implemented in Rust.

use std::any::Any;

use flambeau::exec::{Host, HostCalls, KernelError, KernelResult, Rets};
use flambeau::frontend::{Resolver, Sugar, host_object};
use flambeau::ir::value::{HostObject, HostValue};
use flambeau::ir::{HostOp, NodeId};
use flambeau::{Error, Graph, IValue, Session, Type};

/// Resolves the name of the host's top-level object.
struct Names;

impl Resolver for Names {
    fn value(&self, name: &str) -> Option<Sugar> {
        (name == "bank").then(|| host_object(name))
    }
}

/// An object of the host: an account.
#[derive(Debug)]
struct Account {
    owner: &'static str,
    balance: i64,
}

impl HostObject for Account {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The host's operations: opens accounts, adds to them, reads them, adds numbers.
struct Bank;

impl HostCalls for Bank {
    fn call(&mut self, graph: &Graph, node: NodeId, args: &mut [IValue], rets: &mut Rets) -> KernelResult {
        let op =
            HostOp::of(graph, node).ok_or_else(|| KernelError::misuse("a host operation has no callee"))?;
        let account = |value: &IValue| match value {
            IValue::Host(h) => h.downcast::<Account>().map(|a| (a.owner, a.balance)),
            _ => None,
        };
        let open = |owner, balance| IValue::Host(HostValue::new(Account { owner, balance }));
        let answer = match (&op, &*args) {
            (HostOp::Object(path), []) if path.as_str() == "bank.fee" => IValue::Int(3),
            (HostOp::Function(path, words), [IValue::Int(sum)])
                if path.as_str() == "bank.open" && words.len() <= 1 =>
            {
                open("Ada", *sum)
            }
            (HostOp::Member(name), [object]) if name.as_str() == "balance" => {
                IValue::Int(account(object).ok_or_else(|| KernelError::input("no account"))?.1)
            }
            (HostOp::Member(name), [object]) if name.as_str() == "owner" => {
                IValue::str(account(object).ok_or_else(|| KernelError::input("no account"))?.0)
            }
            (HostOp::Call(_), [object, IValue::Int(more)]) => {
                let (owner, balance) = account(object).ok_or_else(|| KernelError::input("no account"))?;
                open(owner, balance + more)
            }
            (HostOp::Function(path, names), [IValue::Host(_), ..]) if path.as_str() == "builtins.sorted" => {
                IValue::str(&names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(","))
            }
            (HostOp::Function(path, _), [IValue::Int(sum), IValue::Host(more)])
                if path.as_str() == "operator.__add__" =>
            {
                match more.downcast::<Plain>() {
                    Some(Plain(IValue::Int(more))) => IValue::Int(sum + more),
                    _ => return Err(KernelError::input("no number")),
                }
            }
            _ => return Err(KernelError::input(format!("the bank does not do {op:?}"))),
        };
        rets.push(match answer {
            IValue::Host(_) => answer,
            plain => IValue::Host(HostValue::new(Plain(plain))),
        });
        Ok(())
    }

    fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError> {
        match &value {
            IValue::Host(h) => match h.downcast::<Plain>() {
                Some(Plain(plain)) if plain.fits(ty) => Ok(plain.clone()),
                _ => Err(KernelError::input(format!("{:?} is not of type {ty}", h.get()))),
            },
            _ => Ok(value),
        }
    }
}

/// A value of the language wrapped as a host object.
#[derive(Debug)]
struct Plain(IValue);

impl HostObject for Plain {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn run(source: &str, args: &[IValue]) -> Result<IValue, Error> {
    let session = Session::standard()?;
    let program = session.compile_source_with(source, "host.py", &Names)?;
    let mut host = Host::quiet();
    host.set_calls(Bank);
    program.entry("f")?.call_on(args, &[], &mut host)
}

#[test]
fn members_and_calls_of_host_objects_run() {
    let source = "def f(n: int) -> Tuple[int, str]:
    account = bank.open(n)
    richer = account(5)
    fee: int = bank.fee
    for i in range(2):
        richer = richer(i)
    return torch.jit.annotate(int, richer.balance) - fee, torch.jit.annotate(str, account.owner)
";
    let got = run(source, &[IValue::Int(10)]).expect("the program runs");
    assert_eq!(got.to_string(), "(13, Ada)");
}

#[test]
fn values_that_contradict_annotations_fail_at_run_time() {
    let source = "def f(n: int) -> int:\n    return bank.open(start=n).owner\n";
    let error = run(source, &[IValue::Int(1)]).expect_err("a name is not a number");
    assert!(error.message.contains("is not of type int"), "{error}");
}

#[test]
fn operators_on_host_objects_are_calls_of_the_host() {
    let got = run("def f(n: int) -> int:\n    return n + bank.fee\n", &[IValue::Int(1)]);
    assert_eq!(got.expect("the bank adds").to_string(), "4");
    let got = run("def f(n: int) -> str:\n    return sorted(bank.fee, reverse=True)\n", &[IValue::Int(1)]);
    assert_eq!(got.expect("keywords keep their names").to_string(), "reverse");
    let error = run("def f(n: int) -> int:\n    return n * bank.fee\n", &[IValue::Int(1)]);
    let error = error.expect_err("the bank does not multiply").to_string();
    assert!(error.contains("operator.__mul__") && error.contains("line 2"), "{error}");
}

#[test]
fn host_nodes_round_trip_as_text() {
    let session = Session::standard().expect("the session is there");
    let source = "def f(n: int):\n    return bank.open(start=n).owner\n";
    let program = session.compile_source_with(source, "host.py", &Names).expect("it compiles");
    let text = program.entry("f").expect("it is there").graph().to_string();
    assert!(text.contains("^bank.open(start)(%n.1)"), "{text}");
    let again = session.parse_ir(&text).expect("it is read back");
    assert_eq!(again.entry("forward").expect("it is there").graph().to_string(), text);
}
