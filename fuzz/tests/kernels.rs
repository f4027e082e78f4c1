//! A short run of the kernel fuzzer. It is a separate test program because it changes the instruction set of its
//! process.

use flambeau::Session;
use flambeau_exec::{Kernel, Sample};
use flambeau_fuzz::kernels::{CaseVerdict, KernelFuzzer};
use flambeau_ir::OpDef;
use flambeau_tensor::{Scalar, Tensor};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Locked by a test while it runs: the instruction set is a property of the process.
static INSTRUCTION_SET: Mutex<()> = Mutex::new(());

/// Number of cases of one test.
const CASES: u64 = 1500;
const TIME: Duration = Duration::from_secs(20);

#[test]
fn kernels_agree_with_references_strides_and_instruction_sets() {
    let _alone = INSTRUCTION_SET.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = flambeau_ops::registry();
    let mut fuzzer = KernelFuzzer::new(&registry, 1, 1 << 13);
    let (start, mut checked, mut referred) = (Instant::now(), 0, 0);
    for number in 0..CASES {
        if start.elapsed() > TIME {
            break;
        }
        match fuzzer.check(number) {
            CaseVerdict::Checked { reference } => {
                checked += 1;
                referred += u64::from(reference);
            }
            CaseVerdict::Refused => {}
            CaseVerdict::Failed(why) => panic!("case {number}: {}\n{why}", fuzzer.describe(number)),
        }
    }
    assert!(checked > 20 && referred * 4 > checked, "{checked} checked, {referred} with a reference");
}

/// `planted::negated`: negates, but reads one element too early at the end of a last strip of one element.
fn planted() -> OpDef {
    OpDef::new("planted::negated(Tensor self) -> Tensor")
        .with(Kernel::new(|cx| {
            let x = cx.tensor(0)?;
            let mut values = x.to_scalars()?;
            let n = values.len();
            if n > 8 && n % 8 == 1 {
                values[n - 1] = values[n - 2];
            }
            let values: Vec<Scalar> = values.iter().map(|v| Scalar::Float(-v.to_f64())).collect();
            let y = Tensor::from_scalars(&values, x.sizes(), x.dtype())?;
            cx.ret(y);
            Ok(())
        }))
        .with(Sample::tensors(1).floats())
}

#[test]
fn an_off_by_one_in_a_last_strip_is_found() {
    let _alone = INSTRUCTION_SET.lock().unwrap_or_else(PoisonError::into_inner);
    let session = Session::builder().standard().ops([planted()]).build().unwrap();
    let mut fuzzer = KernelFuzzer::new(session.registry(), 2, 1 << 13).only("planted::");
    assert_eq!(fuzzer.operators(), 1);
    let found = (0..2000).find_map(|number| match fuzzer.check(number) {
        CaseVerdict::Failed(why) => Some(why),
        _ => None,
    });
    let why = found.expect("the planted fault is found");
    assert!(why.starts_with("reference: element"), "{why}");
}
