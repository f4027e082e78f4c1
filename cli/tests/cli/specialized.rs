//! Forms of programs that are specialized to inputs.

use super::{accepted, file};

const SOURCE: &str = "def f(x: Tensor, y: Tensor):
    m = x[x > 0]
    return torch.relu(m * 2) + y.size(0)
";

#[test]
fn print_shows_profiles_plans_and_bailouts() {
    let f = file("specialized", "f.py", SOURCE);
    let print =
        |form: &str| accepted(&["print", &f, "--as", form, "-a", "x=rand:f32[4]", "-a", "y=rand:f32[2,3]"]);
    let profiled = print("profiled");
    assert!(profiled.contains("prim::profile[index=0, profiled_type=Float(4"), "{profiled}");
    let optimized = print("optimized");
    assert!(optimized.contains("prim::BailOut_0[index=3](%m.1, %m.1, %y.1)"), "{optimized}");
    assert_eq!(
        optimized.matches("aten::size").count(),
        1,
        "only the continuation asks for the size:\n{optimized}"
    );
    let bailouts = print("bailouts");
    assert!(
        bailouts.contains("f.py:2; failures: 0") || bailouts.contains("f.py:3; failures: 0"),
        "{bailouts}"
    );
}
