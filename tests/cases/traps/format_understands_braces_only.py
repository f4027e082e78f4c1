# test source
# `format` fills empty braces; text inside braces is kept.
def f(n: int) -> str:
    return "{} {0} {:.2f} {{}}".format(n)

def g(n: int, s: str) -> str:
    return "%d %s %%" % (n, s)

# run: f(3) raises "Too few arguments for format string: {} {0} {:.2f} {{}}"
# run: g(3, "x") == "3 x %"

# == source
# def f(n: int) -> str:
#   return torch.format("{} {0} {:.2f} {{}}", n)
#
# def g(n: int,
#     s: str) -> str:
#   _0 = torch.percentFormat("%d %s %%", (n, s))
#   return _0
