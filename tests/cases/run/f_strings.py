# test run
# Text of f-strings: escapes, raw strings, braces, and adjacent literals of all kinds.
def raw(x: int) -> str:
    return rf"\n{x}\t" Rf'\x' f"\t" "\n"

def braces(x: int) -> str:
    return f"{{}}{x}{{{x}}}{{}}"

def only_braces() -> str:
    return f"{{}}"

def mixed(x: int) -> str:
    return f"a{x}" "b{}" f"c{x}" r"\d"

# run: raw(1) == "\\n1\\t\\x\t\n"
# run: braces(1) == "{}1{1}{}"
# run: only_braces() == "{}"
# run: mixed(1) == "a1b{}c1\\d"
