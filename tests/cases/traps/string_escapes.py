# test run
# Octal escapes have three digits, neighbours are one string, and an escaped end of line is nothing, where PyTorch keeps
# the end of the line.
def f() -> List[str]:
    return ['a' "b", "\\ \' \" \n \t", "\101", "line \
goes on", """two
lines"""]

# run: f() == ["ab", "\\ ' \" \n \t", "A", "line goes on", "two\nlines"]
