//! Tests of the parser: sources and their expected trees.

use super::*;

fn sexpr(src: &str) -> String {
    let parsed = parse(src, &FrontendLimits::default());
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    parsed.ast.sexpr(parsed.root)
}

/// Parses an expression and returns its s-expression.
fn expr(src: &str) -> String {
    let parsed = parse_expression(src, &FrontendLimits::default());
    assert!(parsed.problems.is_empty(), "{src}: {:?}", parsed.problems);
    parsed.ast.sexpr(parsed.root).replace("(Var a)", "a").replace("(Var b)", "b").replace("(Var c)", "c")
}

fn problems(src: &str) -> Vec<(ProblemKind, String, String)> {
    parse(src, &FrontendLimits::default())
        .problems
        .into_iter()
        .map(|p| (p.kind, src[p.span.start as usize..p.span.end as usize].to_string(), p.message))
        .collect()
}

#[test]
fn precedence_is_pythons() {
    assert_eq!(expr("a or b and c"), "(BinOp or a (BinOp and b c))");
    assert_eq!(expr("~a + b"), "(BinOp + (UnaryOp ~ a) b)");
    assert_eq!(expr("-a ** b"), "(UnaryOp - (BinOp ** a b))");
    assert_eq!(expr("a ** -b * c"), "(BinOp * (BinOp ** a (UnaryOp - b)) c)");
    assert_eq!(expr("a ** b ** c"), "(BinOp ** a (BinOp ** b c))");
    assert_eq!(expr("a - b - c"), "(BinOp - (BinOp - a b) c)");
    assert_eq!(expr("not a == b"), "(UnaryOp not (BinOp == a b))");
    assert_eq!(
        expr("a | b ^ c & a << b + c * a"),
        "(BinOp | a (BinOp ^ b (BinOp & c (BinOp << a (BinOp + b (BinOp * c a))))))"
    );
    assert_eq!(expr("a if b else c if a else b"), "(TernaryIf b a (TernaryIf a c b))");
    assert_eq!(expr("a is not b"), "(BinOp is not a b)");
    assert_eq!(expr("a not in b"), "(UnaryOp not (BinOp in a b))");
    assert_eq!(expr("a @ b // c"), "(BinOp // (BinOp @ a b) c)");
}

#[test]
fn comparisons_group_to_the_left() {
    assert_eq!(expr("a < b < c"), "(BinOp < (BinOp < a b) c)");
    assert_eq!(expr("a < b + c <= a"), "(BinOp <= (BinOp < a (BinOp + b c)) a)");
    assert_eq!(expr("a == b not in c"), "(UnaryOp not (BinOp in (BinOp == a b) c))");
    assert_eq!(expr("a < (b < c)"), "(BinOp < a (BinOp < b c))");
}

#[test]
fn a_minus_joins_its_number() {
    assert_eq!(expr("-1"), "(Const -1)");
    assert_eq!(expr("a - 1"), "(BinOp - a (Const 1))");
    assert_eq!(expr("-2 ** 2"), "(UnaryOp - (BinOp ** (Const 2) (Const 2)))");
    assert_eq!(expr("- -1.5"), "(UnaryOp - (Const -1.5))");
    assert_eq!(expr("-9223372036854775808"), "(Const -9223372036854775808)");
    assert_eq!(problems("9223372036854775808\n").len(), 1);
}

#[test]
fn brackets() {
    assert_eq!(expr("()"), "(TupleLiteral)");
    assert_eq!(expr("(a)"), "a");
    assert_eq!(expr("(a,)"), "(TupleLiteral a)");
    assert_eq!(expr("(a, b)"), "(TupleLiteral a b)");
    assert_eq!(expr("[a, b,]"), "(ListLiteral a b)");
    assert_eq!(expr("{}"), "(DictLiteral (List) (List))");
    assert_eq!(expr("{a: b, b: c,}"), "(DictLiteral (List a b) (List b c))");
    assert_eq!(expr("a(b, *c, a=b,)"), "(Apply a (List b (Starred c)) (List (Attribute a b)))");
    assert_eq!(expr("a.b.c(a).b"), "(Select b (Apply (Select c (Select b a)) (List a) (List)))");
    assert_eq!(expr("a[b]"), "(Subscript a (List b))");
    assert_eq!(
        expr("a[b:, :, ::c, ..., None]"),
        "(Subscript a (List (SliceExpr b - -) (SliceExpr - - -) (SliceExpr - - c) (Dots) (None)))"
    );
    assert_eq!(expr("a[b:c:a]"), "(Subscript a (List (SliceExpr b c a)))");
    assert_eq!(expr("a[b,]"), "(Subscript a (List b))");
    assert_eq!(expr("(a if b else c, b)"), "(TupleLiteral (TernaryIf b a c) b)");
}

#[test]
fn comprehensions() {
    assert_eq!(expr("[a for b in c]"), "(ListComp a b c)");
    assert_eq!(expr("[a for b, c in a if b if c]"), "(ListComp a (TupleLiteral b c) a b c)");
    assert_eq!(expr("[a for a, (b, c) in c]"), "(ListComp a (TupleLiteral a (TupleLiteral b c)) c)");
    assert_eq!(expr("{a: b for a in c}"), "(DictComp a b a c)");
    assert_eq!(expr("a(b for b in c)"), "(Apply a (List (ListComp b b c)) (List))");
    assert_eq!(expr("(b for b in c)"), "(ListComp b b c)");
    assert_eq!(expr("[[a for a in b] for b in c]"), "(ListComp (ListComp a a b) b c)");
    assert_eq!(problems("[a for b in c for c in a]\n")[0].0, ProblemKind::Unsupported);
}

#[test]
fn strings() {
    assert_eq!(expr("'a' \"b\"\n"), "(StringLiteral \"ab\")");
    assert_eq!(
        expr("f'x{a}y{b + c}'"),
        "(FormatString (StringLiteral \"x\") a (StringLiteral \"y\") (BinOp + b c))"
    );
    assert_eq!(expr("'x' f'{a}' 'y'"), "(FormatString (StringLiteral \"x\") a (StringLiteral \"y\"))");
    assert_eq!(expr("f'{{}}'"), "(FormatString (StringLiteral \"{}\"))");
    assert_eq!(problems("f'{a!r}'\n").len(), 1);
    assert_eq!(problems("f'{a:.2f}'\n")[0].0, ProblemKind::Unsupported);
}

#[test]
fn statements() {
    assert_eq!(sexpr("a = b = 1"), "(Module (Assign (List (Var a) (Var b)) (Const 1) -))");
    assert_eq!(sexpr("a, b = c"), "(Module (Assign (List (TupleLiteral (Var a) (Var b))) (Var c) -))");
    assert_eq!(sexpr("a, = c"), "(Module (Assign (List (TupleLiteral (Var a))) (Var c) -))");
    assert_eq!(
        sexpr("a, *b = c"),
        "(Module (Assign (List (TupleLiteral (Var a) (Starred (Var b)))) (Var c) -))"
    );
    assert_eq!(sexpr("a: int = 1"), "(Module (Assign (List (Var a)) (Const 1) (Var int)))");
    assert_eq!(sexpr("a : int"), "(Module (Assign (List (Var a)) - (Var int)))");
    assert_eq!(
        sexpr("a = []  # type: List[int]"),
        "(Module (Assign (List (Var a)) (ListLiteral) (Subscript (Var List) (List (Var int)))))"
    );
    assert_eq!(
        sexpr("a //= 2; b @= c"),
        "(Module (AugAssign // (Var a) (Const 2)) (AugAssign @ (Var b) (Var c)))"
    );
    assert_eq!(sexpr("del a, b[0]"), "(Module (Delete (Var a) (Subscript (Var b) (List (Const 0)))))");
    assert_eq!(sexpr("assert a, 'm'"), "(Module (Assert (Var a) (StringLiteral \"m\")))");
    assert_eq!(sexpr("import a.b"), "(Module (Import (StringLiteral \"a.b\")))");
    assert_eq!(sexpr("raise E('x')"), "(Module (Raise (Apply (Var E) (List (StringLiteral \"x\")) (List))))");
}

#[test]
fn blocks() {
    let src = "if a:\n  b\nelif b:\n  c\nelif c:\n  a\nelse:\n  pass\nd\n";
    assert_eq!(
        sexpr(src),
        "(Module (If (Var a) (List (ExprStmt (Var b))) (List (If (Var b) (List (ExprStmt (Var c))) (List (If (Var c) \
         (List (ExprStmt (Var a))) (List (Pass))))))) (ExprStmt (Var d)))"
    );
    assert_eq!(
        sexpr("if a:\n  b\nelif b:\n  c\nd\n"),
        "(Module (If (Var a) (List (ExprStmt (Var b))) (List (If (Var b) (List (ExprStmt (Var c))) (List)))) (ExprStmt (Var d)))"
    );
    assert_eq!(
        sexpr("if a: b\nelse: c\n"),
        "(Module (If (Var a) (List (ExprStmt (Var b))) (List (ExprStmt (Var c)))))"
    );
    assert_eq!(
        sexpr("for i, x in a:\n  while b: break\n"),
        "(Module (For (List (TupleLiteral (Var i) (Var x))) (List (Var a)) (List (While (Var b) (List (Break))))))"
    );
    assert_eq!(
        sexpr("with a as b, c:\n  pass\n"),
        "(Module (With (List (WithItem (Var a) (Var b)) (WithItem (Var c) -)) (List (Pass))))"
    );
}

#[test]
fn definitions() {
    assert_eq!(
        sexpr("def f(a, b: int = 1, *, c: str) -> int:\n  return a\n"),
        "(Module (Def f (Decl (List (Param a - -) (Param b (Var int) (Const 1)) (Param c (Var str) - -)) (Var int)) \
         (List (Return (Var a))) (List)))"
    );
    let typed = "(Module (Def f (Decl (List (Param a (Var int) -) (Param b (Var str) -)) (Var int)) \
                 (List (Return (Var a))) (List)))";
    assert_eq!(sexpr("def f(a, b):\n  # type: (int, str) -> int\n  return a\n"), typed);
    assert_eq!(sexpr("def f(a, b):  # type: (int, str) -> int\n  return a\n"), typed);
    assert_eq!(
        sexpr("def f(a,  # type: int\n      b  # type: str\n      ):\n  # type: (...) -> int\n  return a\n"),
        typed
    );
    assert_eq!(
        sexpr(
            "class C(Module):\n  __parameters__ = []\n  __annotations__[\"0\"] = T\n  n : int\n  def f(self): pass\n"
        ),
        "(Module (ClassDef C (List (Var Module)) (List (Assign (List (Var __parameters__)) (ListLiteral) -) \
         (Assign (List (Subscript (Var __annotations__) (List (StringLiteral \"0\")))) (Var T) -) \
         (Assign (List (Var n)) - (Var int)) (Def f (Decl (List (Param self - -)) -) (List (Pass)) (List))) (List)))"
    );
    assert_eq!(
        sexpr("@torch.jit.script\ndef f(): pass\n"),
        "(Module (Def f (Decl (List) -) (List (Pass)) (List (Select script (Select jit (Var torch))))))"
    );
}

#[test]
fn all_errors_are_reported() {
    let src = "def f(x):\n  y = (1 +\n  return y\ndef g(x):\n  a b\n  try:\n    pass\n  return lambda: 1\n";
    let found = problems(src);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert_eq!(found[2].2, "expected end of line after the statement, found `b`");
    assert_eq!(found[3], (ProblemKind::Unsupported, "try".into(), "`try` is not supported".into()));
    let else_of_loop = problems("for i in a:\n  pass\nelse:\n  pass\n");
    assert_eq!(else_of_loop[0].2, "`else` of a loop is not supported");
    for (src, fragment) in [
        ("f(a=1, 2)\n", "positional argument"),
        ("1 = a\n", "lhs of assignment must be a variable"),
        ("def f(*a): pass\n", "variable number"),
        ("{a, b}\n", "a set"),
        ("f(**a)\n", "expansion"),
        ("if a\n  b\n", "`:`"),
        ("if a:\nb\n", "indented block"),
        ("a = [1, 2\n", "never closed"),
        ("x = )\n", "an expression"),
        ("  a\n    b\n", "unexpected indentation"),
        ("(a := 1)\n", "`:=`"),
    ] {
        let found = problems(src);
        assert!(found.iter().any(|p| p.2.contains(fragment)), "{src}: {found:?}");
    }
}

#[test]
fn deep_nesting_is_safe() {
    let n = 100_000;
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("f(", ")"),
        ("a[", "]"),
        ("{a: ", "}"),
        ("2 ** ", ""),
    ] {
        let src = format!("x = {}a{}\n", open.repeat(n), close.repeat(n));
        let parsed = parse(&src, &FrontendLimits::default());
        assert!(parsed.problems.is_empty(), "{open}");
        assert!(!parsed.ast.sexpr(parsed.root).is_empty());
    }
    let src = format!("x = a{}\n", ".b".repeat(n));
    assert!(parse(&src, &FrontendLimits::default()).problems.is_empty());
    let src = format!("x = a{}\n", " + b".repeat(n));
    assert!(parse(&src, &FrontendLimits::default()).problems.is_empty());
    // Chains that stay on the parser's stack while many tokens ask for the innermost bracket.
    for part in ["a if b else ", "not not not a in b in c or ", "a in b if c else "] {
        let src = format!("x = {}a{}\n", part.repeat(n), " in b".repeat(n));
        assert!(parse(&src, &FrontendLimits::default()).problems.is_empty(), "{part}");
    }
    let src = format!("x = {}a{}\n", "not ".repeat(n), " in b".repeat(n));
    assert!(parse(&src, &FrontendLimits::default()).problems.is_empty());
    let limits = FrontendLimits { nesting: 1000, ..FrontendLimits::default() };
    let src = format!("x = {}a{}\n", "(".repeat(n), ")".repeat(n));
    assert_eq!(parse(&src, &limits).problems[0].kind, ProblemKind::Limit);
    assert!(parse(&"(".repeat(n), &FrontendLimits::default()).problems.len() < 3);
}

#[test]
fn reported_errors_are_limited() {
    for limit in [0, 1, 7] {
        let limits = FrontendLimits { problems: limit, ..FrontendLimits::default() };
        for src in
            ["$".repeat(100_000), "x = )\n".repeat(1000), "$ x = )\n".repeat(1000), "f'}' ".repeat(1000)]
        {
            assert_eq!(parse(&src, &limits).problems.len(), limit.max(1), "{}", &src[..8]);
        }
    }
}

/// The size of a function is that of its own trees, wherever in the file the function is.
#[test]
fn sizes_of_functions() {
    let parsed = |src: &str| {
        let parsed = parse(src, &FrontendLimits::default());
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        parsed
    };
    for def in [
        "def f(self, a: int):\n    return a\n",
        "def f(a=1, *, b):\n    return a\n",
        "def f():\n    return a if b else c\n",
        "@d(1)\ndef f():\n    x: int\n    return\n",
        "def f(x):\n    if x:\n        raise\n    return x[:, ::2]\n",
    ] {
        let size_of_last = |parsed: &Parsed| {
            let defs = parsed.ast.children(parsed.root);
            parsed.ast.size(*defs.last().expect("a definition"))
        };
        let alone = parsed(def);
        let (size, all) = (size_of_last(&alone), alone.ast.len());
        assert!(size <= all && size + 6 >= all, "{def}: {size} of {all}");
        assert_eq!(size_of_last(&parsed(&def.repeat(100))), size, "{def}");
    }
}

#[test]
fn raw_f_strings_keep_backslashes() {
    for (src, parts) in [
        (r#"rf"\n{a}\{b}{{""#, r#"(StringLiteral "\\n") a (StringLiteral "\\") b (StringLiteral "{")"#),
        (r#"fR'\t' f'\t'"#, r#"(StringLiteral "\\t") (StringLiteral "\t")"#),
        (
            r#"'\t' rf'\t{a}' '\t' f'\t'"#,
            r#"(StringLiteral "\t") (StringLiteral "\\t") a (StringLiteral "\t") (StringLiteral "\t")"#,
        ),
        (r#"f"{a}" "b" f"{c}""#, r#"a (StringLiteral "b") c"#),
    ] {
        assert_eq!(expr(src), format!("(FormatString {parts})"), "{src}");
    }
    assert!(problems("x = bf'a'\n")[0].2.contains("`bf'`"));
}

#[test]
fn causes_of_exceptions_are_dropped() {
    assert_eq!(sexpr("raise a from None\n"), sexpr("raise a\n"));
    assert_eq!(problems("return a from b\n").len(), 1);
    assert_eq!(problems("raise a from\n").len(), 1);
}

#[test]
fn deep_blocks_are_safe() {
    // The s-expression is quadratic in the depth: at 2,000 levels, one blank per level already makes 2 MB.
    let mut src = String::new();
    for i in 0..2000 {
        src.push_str(&" ".repeat(i));
        src.push_str("if a:\n");
    }
    src.push_str(&" ".repeat(2000));
    src.push_str("pass\n");
    assert!(parse(&src, &FrontendLimits::default()).problems.is_empty());
    let chain = format!("if a: pass\n{}", "elif b: pass\n".repeat(100_000));
    assert!(parse(&chain, &FrontendLimits::default()).problems.is_empty());
}

#[test]
fn long_files_are_linear() {
    let line = |i: usize| format!("  x{i} = torch.add(x{}, [1, 2.5, \"s\"], alpha=a[{i}:, 0])\n", i / 2);
    let file = |n: usize| (0..n).fold(String::from("def f(a):\n"), |s, i| s + &line(i));
    let time = |src: &str| {
        let start = std::time::Instant::now();
        assert!(parse(src, &FrontendLimits::default()).problems.is_empty());
        start.elapsed().as_secs_f64()
    };
    let (small, large) = (file(10_000), file(100_000));
    let (t1, t10) = (time(&small).min(time(&small)), time(&large));
    assert!(t10 < 40.0 * t1 + 0.5, "10,000 lines: {t1} s, 100,000 lines: {t10} s");
}

#[test]
fn any_bytes_give_at_most_errors() {
    let src = "def f(a: int=1) -> List[int]:\n  x = [a for a in b if c]\n  if a: return f'{x}'\n";
    for i in 0..src.len() {
        for junk in ["", "(", ")", "\n", ":", "\"", "\\", "é", "for ", "= ", ", "] {
            let text = format!("{}{junk}{}", &src[..i], &src[(i + 1).min(src.len())..]);
            let parsed = parse(&text, &FrontendLimits::default());
            for p in &parsed.problems {
                assert!(p.span.end as usize <= text.len() && p.span.start <= p.span.end, "{text}: {p:?}");
            }
        }
    }
}
