# test source
# A variable of a branch is defined afterwards if the other branch raises.
def f(c: bool) -> int:
    if c:
        x = 1
    else:
        raise RuntimeError("no x")
    return x

# run: f(True) == 1
# run: f(False) raises "no x"

# == source
# def f(c: bool) -> int:
#   _0 = uninitialized(int)
#   if c:
#     x = 1
#   else:
#     ops.prim.RaiseException("no x", "builtins.RuntimeError")
#     x = _0
#   return x
