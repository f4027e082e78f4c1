# test run
# Octal escapes have three digits, adjacent literals are one string, and an escaped line end is removed, where PyTorch keeps
# the line end.
def f() -> List[str]:
    return ['a' "b", "\\ \' \" \n \t", "\101", "line \
goes on", """two
lines"""]

# run: f() == ["ab", "\\ ' \" \n \t", "A", "line goes on", "two\nlines"]
