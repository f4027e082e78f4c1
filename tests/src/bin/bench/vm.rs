//! Benchmarks of the virtual machine on programs with numbers and lists.

use crate::{per_call, row};
use anyhow::Result;
use flambeau::{IValue, Session};

/// Measures the virtual machine.
pub(crate) fn figures(session: &Session) -> Result<()> {
    println!("-- machine");
    let source = "
def loop(n: int) -> int:
    s = 0
    for i in range(n):
        s = s + (i * 3) % 7
    return s

def collatz(n: int) -> int:
    total = 0
    for i in range(1, n):
        x = i
        while x != 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            total += 1
    return total

def lists(n: int) -> int:
    l: List[int] = []
    for i in range(n):
        l.append(i)
    s = 0
    for v in l:
        s += v
    return s
";
    let program = session.compile_source(source, "bench.py")?;
    let call = |name: &str, n: i64| -> Result<f64> {
        let entry = program.entry(name)?;
        per_call(|| {
            entry.call(&[IValue::Int(n)], &[])?;
            Ok(())
        })
    };
    row("int loop, per iteration", call("loop", 100_000)? / 1e5, "ns", 8.0, "81 ns");
    row("collatz(3000)", call("collatz", 3000)? / 1e6, "ms", 5.0, "45 ms");
    row("list append then sum, per element", call("lists", 100_000)? / 1e5, "ns", 20.0, "172 ns");
    Ok(())
}
