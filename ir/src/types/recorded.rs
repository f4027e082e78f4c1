//! Comparison with recorded results of PyTorch: texts of types, and subtyping and unification of every pair of types.

use super::{NoClasses, Type, is_subtype, parse_ir_type, unify};

/// Written by the script of the same name.
const RECORDED: &str = include_str!("../../../tests/oracle/type_pairs.txt");

/// Inserts the separators that PyTorch omits in a union of all number types; see `print.rs`.
fn repaired(text: &str) -> String {
    text.replace("TensorScalar", "Tensor, Scalar")
        .replace("Tensornumber", "Tensor, number")
        .replace("(, ", "(")
}

fn types() -> Vec<Type> {
    let rows = RECORDED.lines().filter_map(|line| line.strip_prefix("T\t"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let (ty, end) = parse_ir_type(cells[0], 0).unwrap_or_else(|e| panic!("{row}: {e}"));
        assert_eq!(end, cells[0].len(), "{row}");
        assert_eq!(ty.to_string(), repaired(cells[1]), "{row}");
        assert_eq!(ty.annotation_str(), repaired(cells[2]), "{row}");
        assert_eq!(parse_ir_type(&ty.to_string(), 0).map(|(t, _)| t.to_string()), Ok(ty.to_string()));
        ty
    })
    .collect()
}

#[test]
fn results_agree_with_pytorch() {
    let types = types();
    let mut differences = Vec::new();
    for row in RECORDED.lines().filter(|line| !line.starts_with("T\t")) {
        let cells: Vec<&str> = row.split('\t').collect();
        let pick = |i: usize| types[cells[i].parse::<usize>().expect("a number")];
        let (a, b) = (pick(0), pick(1));
        let subtype = u8::from(is_subtype(a, b, &NoClasses)).to_string();
        let unified = unify(a, b, false, None, &NoClasses).map_or("-".to_owned(), |t| t.to_string());
        if subtype != cells[2] || unified != repaired(cells[3]) {
            differences.push(format!("{a} and {b}: {subtype} {unified}, recorded {} {}", cells[2], cells[3]));
        }
    }
    assert_eq!(differences, [""; 0], "{} differences", differences.len());
}
