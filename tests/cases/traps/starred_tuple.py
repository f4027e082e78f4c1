# test source
# A starred target of a tuple is a tuple.
def f() -> Tuple[int, Tuple[float, str]]:
    a, *b = (1, 2.5, "x")
    return a, b

# run: f() == (1, (2.5, "x"))

# == source
# def f() -> Tuple[int, Tuple[float, str]]:
#   return (1, (2.5, "x"))
