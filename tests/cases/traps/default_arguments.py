# test source
# Defaults are constants; keyword-only ones are given by name.
def g(a: int, b: float = 1.5, *, c: str = "c") -> str:
    return str(a) + str(b) + c

def f() -> Tuple[str, str]:
    return g(1), g(2, c="d", b=0.5)

# run: f() == ("11.5c", "20.5d")

# == source
# def g(a: int,
#     b: float=1.5,
#     c: str="c") -> str:
#   _0 = torch.add(torch.add(str(a), str(b)), c)
#   return _0
#
# def f() -> Tuple[str, str]:
#   _0 = (g(1, 1.5, c="c", ), g(2, 0.5, c="d", ))
#   return _0
