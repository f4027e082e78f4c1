//! Tests of expressions: SymPy's texts, hostile texts, exact values, derived sizes, guards.

use super::*;

fn parsed(text: &str) -> (Exprs, ExprId) {
    let mut exprs = Exprs::new();
    let id = exprs.parse(text).unwrap();
    (exprs, id)
}

/// Texts in constructor form, and what SymPy prints for them.
const PRINTED: &[(&str, &str)] = &[
    ("Symbol('s77', positive=True, integer=True)", "s77"),
    ("Add(Symbol('s77', positive=True, integer=True), Integer(-1))", "s77 - 1"),
    ("Add(Mul(Integer(2), Symbol('s6')), Integer(1))", "2*s6 + 1"),
    ("Add(FloorDiv(Add(Symbol('s37'), Integer(-1)), Integer(2)), Integer(1))", "(((s37 - 1)//2)) + 1"),
    ("FloorDiv(Symbol('s77'), FloorDiv(Symbol('s77'), Integer(2)))", "(s77//((s77//2)))"),
    ("Mul(Integer(3), FloorDiv(Symbol('s'), Integer(2)))", "3*((s//2))"),
    ("Mul(Integer(-1), Symbol('s6'))", "-s6"),
    ("Mul(Integer(-2), Symbol('s6'))", "-2*s6"),
    ("Add(Integer(1), Mul(Integer(-2), Symbol('s6')))", "1 - 2*s6"),
    ("Add(Integer(-1), Mul(Integer(-1), Symbol('s6')))", "-s6 - 1"),
    ("Pow(Symbol('s6'), Integer(2))", "s6**2"),
    ("Pow(Add(Symbol('a'), Integer(1)), Integer(2))", "(a + 1)**2"),
    ("Mul(Symbol('s1'), Symbol('s2'))", "s1*s2"),
    ("Mul(Add(Symbol('a'), Integer(1)), Symbol('b'))", "b*(a + 1)"),
    (
        "Add(Pow(Symbol('x'), Integer(2)), Mul(Symbol('x'), Symbol('y')), Symbol('y'), Integer(3))",
        "x**2 + x*y + y + 3",
    ),
    ("Add(Symbol('u0', integer=True), Symbol('u1', integer=True))", "u0 + u1"),
    ("Mul(Rational(1, 2), Symbol('s'))", "s/2"),
    ("Mul(Symbol('a'), Pow(Symbol('b'), Integer(-1)))", "a/b"),
    ("StrictGreaterThan(Symbol('s6'), Integer(4))", "s6 > 4"),
    ("Equality(Add(Symbol('u0'), Symbol('u1')), Integer(5))", "Eq(u0 + u1, 5)"),
    ("And(LessThan(Symbol('a'), Integer(2)), Unequality(Symbol('b'), Integer(1)))", "(a <= 2) & Ne(b, 1)"),
    ("Max(Integer(1), FloorDiv(Symbol('s46'), Integer(2)))", "Max(1, (s46//2))"),
    ("Mod(Symbol('s6'), Integer(4))", "Mod(s6, 4)"),
    ("FloatTrueDiv(Float('1.0', precision=53), ToFloat(Symbol('s6')))", "FloatTrueDiv(1.0, ToFloat(s6))"),
    ("OpaqueUnaryFn_sqrt(ToFloat(Symbol('s11')))", "OpaqueUnaryFn_sqrt(ToFloat(s11))"),
    (
        "Piecewise(ExprCondPair(Symbol('a'), StrictGreaterThan(Symbol('a'), Integer(5))), ExprCondPair(Symbol('b'), true))",
        "Piecewise((a, a > 5), (b, True))",
    ),
    ("Add(Mul(Integer(2), FloorDiv(Symbol('s'), Integer(2))), Symbol('s'))", "s + 2*((s//2))"),
];

#[test]
fn expressions_print_as_sympy_prints_them() {
    for (text, printed) in PRINTED {
        let (exprs, id) = parsed(text);
        assert_eq!(exprs.to_text(id), *printed, "{text}");
    }
}

#[test]
fn the_constructor_form_reads_back_unchanged() {
    for (text, _) in PRINTED {
        let (exprs, id) = parsed(text);
        assert_eq!(exprs.srepr(id), *text);
    }
}

#[test]
fn equal_expressions_have_equal_ids() {
    let mut exprs = Exprs::new();
    let a = exprs.parse("Add(Symbol('s', integer=True), Integer(1))").unwrap();
    let b = exprs.parse("Add( Symbol( 's' ),Integer(1) )").unwrap();
    assert_eq!(a, b);
    assert!(exprs.is_integer(Symbol::new("s")));
}

#[test]
fn text_that_is_no_expression_is_refused() {
    let mut exprs = Exprs::new();
    let nested = format!("{}Integer(1){}", "Identity(".repeat(100_000), ")".repeat(100_000));
    let cases: &[(&str, &str)] = &[
        ("", "expected an expression at byte 0"),
        ("__import__('os').system('true')", "no function `__import__`"),
        ("zz99 + 1", "expected `(` at byte 5"),
        ("2**2**2", "expected the end of the expression at byte 1"),
        ("Integer(99999999999999999999)", "does not fit into 64 bits"),
        ("Pow(Integer(1))", "`Pow` cannot have 1 arguments"),
        ("Add(Integer(1), Integer(2)", "expected `,` or `)`"),
        ("Symbol('a\\'b')", "a string without escapes"),
        ("Rational(2, 4)", "lowest terms"),
        ("Symbol('é')é", "the end of the expression"),
        (&nested, "limit of 64 levels"),
    ];
    for (text, message) in cases {
        let error = exprs.parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn values_are_exact() {
    let value = |text: &str| {
        let (exprs, id) = parsed(text);
        exprs.eval(id, &|s| (s == "s").then_some(Number::Int(7))).map_err(|e| e.to_string())
    };
    assert_eq!(
        value("Add(Mul(Rational(1, 2), Add(Symbol('s'), Integer(1))), Integer(1))"),
        Ok(Number::Int(5))
    );
    assert_eq!(value("FloorDiv(Mul(Integer(-1), Symbol('s')), Integer(2))"), Ok(Number::Int(-4)));
    assert_eq!(value("PythonMod(Symbol('s'), Integer(-4))"), Ok(Number::Int(-1)));
    assert_eq!(value("IntTrueDiv(Symbol('s'), Integer(2))"), Ok(Number::Float(3.5)));
    assert_eq!(value("Pow(Symbol('s'), Integer(-1))"), Ok(Number::Ratio(1, 7)));
    assert_eq!(
        value(
            "Where(StrictGreaterThan(Symbol('s'), Integer(4)), Symbol('s'), FloorDiv(Integer(1), Integer(0)))"
        ),
        Ok(Number::Int(7))
    );
    let piecewise = |bound: &str| {
        let condition = format!("StrictGreaterThan(Symbol('s'), Integer({bound}))");
        value(&format!(
            "Piecewise(ExprCondPair(Symbol('s'), {condition}), ExprCondPair(Integer(1), Symbol('b')))"
        ))
    };
    assert_eq!(piecewise("4"), Ok(Number::Int(7)));
    assert!(piecewise("8").is_err());
    assert!(value("Piecewise(Symbol('s'))").is_err());
    assert_eq!(value("CeilToInt(Rational(7, 2))"), Ok(Number::Int(4)));
    assert_eq!(value("RoundToInt(Rational(7, 2))"), Ok(Number::Int(4)));
    assert_eq!(value("RoundToInt(Integer(9007199254740993))"), Ok(Number::Int(9_007_199_254_740_993)));
    assert_eq!(value("RoundToInt(Rational(-5, 2))"), Ok(Number::Int(-2)));
    // Python: `1.0 // 0.1`, `-1.0 // 0.3` and `math.sqrt(-1)`.
    assert_eq!(
        value("FloorDiv(Float('1.0', precision=53), Float('0.1', precision=53))"),
        Ok(Number::Float(9.0))
    );
    assert_eq!(
        value("FloorDiv(Float('-1.0', precision=53), Float('0.3', precision=53))"),
        Ok(Number::Float(-4.0))
    );
    assert!(value("OpaqueUnaryFn_sqrt(Float('-1.0', precision=53))").is_err());
    assert_eq!(value("TruncToInt(Float('-2.5', precision=53))"), Ok(Number::Int(-2)));
    assert_eq!(value("Max(Symbol('s'), Integer(9))"), Ok(Number::Int(9)));
    assert!(value("Pow(Symbol('s'), Integer(64))").unwrap_err().contains("does not fit"));
    assert!(value("Pow(Pow(Integer(10), Integer(18)), Pow(Integer(10), Integer(18)))").is_err());
    assert!(value("Mod(Symbol('s'), Integer(0))").unwrap_err().contains("division by zero"));
    assert!(value("Symbol('t')").unwrap_err().contains("`t` has no value"));
    assert!(value("Mul(Integer(9223372036854775807), Integer(-9223372036854775807))").is_err());
    assert!(value("FloorDiv(Integer(-9223372036854775808), Integer(-1))").is_err());
}

#[test]
fn derived_sizes_are_solved() {
    let mut exprs = Exprs::new();
    let mut ids = [
        "Mul(Integer(2), Symbol('s'))",
        "Add(Symbol('s'), Integer(1))",
        "Add(Symbol('a'), Symbol('b'))",
        "Pow(Symbol('t'), Integer(2))",
    ]
    .map(|text| exprs.parse(text).unwrap())
    .into_iter();
    let (double, next, sum, square) =
        (ids.next().unwrap(), ids.next().unwrap(), ids.next().unwrap(), ids.next().unwrap());
    let s = Symbol::new("s");
    let mut bindings = Bindings::new();
    assert_eq!(bindings.relate(&exprs, double, 7), Ok(Solved::NoSolution(s)));
    assert_eq!(bindings.relate(&exprs, double, 6), Ok(Solved::Bound(s)));
    assert_eq!(bindings.get(s), Some(Number::Int(3)));
    assert_eq!(bindings.relate(&exprs, next, 4), Ok(Solved::Agrees));
    assert_eq!(bindings.relate(&exprs, next, 5), Ok(Solved::Differs(Number::Int(4))));
    assert_eq!(bindings.relate(&exprs, sum, 5), Ok(Solved::Undetermined));
    bindings.set(Symbol::new("a"), Number::Int(2));
    assert_eq!(bindings.relate(&exprs, sum, 5), Ok(Solved::Bound(Symbol::new("b"))));
    assert_eq!(bindings.relate(&exprs, square, 4), Ok(Solved::Undetermined));
}

#[test]
fn guards_become_conditions_over_terms() {
    let mut exprs = Exprs::new();
    let holds = |exprs: &mut Exprs, text: &str| {
        let guard = exprs.parse_guard(text).unwrap();
        exprs.eval(guard.condition, &|s| Some(Number::Int(s.as_str().len() as i64))).unwrap()
    };
    assert_eq!(holds(&mut exprs, "(L['x'].size()[0] // 2) != 1"), Number::Bool(true));
    assert_eq!(holds(&mut exprs, "L['a'] == ((-1) + L['bc'])"), Number::Bool(true));
    assert_eq!(holds(&mut exprs, "3 <= L['a'] < 7 and not L['a'] == 4"), Number::Bool(true));
    assert_eq!(holds(&mut exprs, "max(L['a'], 2*3) % 4 == 2 or False"), Number::Bool(true));
    assert_eq!(holds(&mut exprs, "2**3 - 1 == 7"), Number::Bool(true));
    let guard = exprs.parse_guard("L['l'][1]['k'].size()[0] == L['l'][1]['k'].size()[0]").unwrap();
    assert_eq!(guard.text, "l[1]['k'].size()[0] == l[1]['k'].size()[0]");
    assert_eq!(guard.terms.len(), 1);
    assert_eq!(guard.terms[0].path, [PathStep::Index(1), PathStep::Key("k".to_owned()), PathStep::Size(0)]);
    for text in
        ["__import__('os')", "L['x'", "1 +", "L['x'].size()[0] == 1 2", &"(".repeat(5000), &"-".repeat(5000)]
    {
        exprs.parse_guard(text).unwrap_err();
    }
}

#[test]
fn floats_print_as_in_python() {
    for (x, text) in [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e16, "1e+16"),
        (1.5e-7, "1.5e-07"),
        (123456.0, "123456.0"),
        (0.0001, "0.0001"),
        (-2e300, "-2e+300"),
    ] {
        assert_eq!(python_float(x), text);
    }
}
