//! What a session's settings do to the programs it runs.

use flambeau::rewrite::{Pass, PassCx, PassEntry, PassError};
use flambeau::tensor::DType;
use flambeau::{Execution, Fault, IValue, Session, Tensor};

/// Stands in the place of a pass that programs need to mean what they mean.
#[derive(Default)]
struct Refuses;

impl Pass for Refuses {
    const NAME: &'static str = "guard_copies";
    const DOC: &'static str = "fails";

    fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
        Err(PassError::new(Fault::Internal, "can't say who writes this view"))
    }
}

/// A copy stands for the view that `conj` gives, here and in what the function calls.
const VIEWS: &str = "
def inner(x):
    y = torch.conj(x)
    return y + 1

def outer(x):
    return inner(x) + 1
";

#[test]
fn what_a_program_needs_to_mean_what_it_means_is_not_left_out() {
    let x = [IValue::Tensor(Tensor::zeros(&[2], DType::C64).expect("small"))];
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let builder = || Session::builder().standard().execution(execution);
        let whole = builder().build().expect("consistent");
        let lamed = builder().pass(PassEntry::of::<Refuses>()).build().expect("consistent");
        for name in ["inner", "outer"] {
            let call = |session: &Session| {
                let program = session.compile_source(VIEWS, "views.py").expect("compiles");
                program.entry(name).expect("there").call(&x, &[])
            };
            assert!(call(&whole).is_ok(), "{execution:?} {name}");
            let error = call(&lamed).expect_err("the pass fails");
            assert_eq!(error.fault, Fault::Internal, "{execution:?} {name}");
            assert!(error.render().contains("who writes this view"), "{error}");
        }
    }
}
