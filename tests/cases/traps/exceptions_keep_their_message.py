# test source
# Any exception ends the program; its class is part of the message.
def f(n: int) -> int:
    if n == 0:
        raise KeyError("no such key")
    if n == 1:
        raise ValueError
    raise Exception("a", n)

# run: f(0) raises "no such key"
# run: f(1) raises ""
# run: f(2) raises "(a, 2)"

# == source
# def f(n: int) -> int:
#   if torch.eq(n, 0):
#     ops.prim.RaiseException("no such key", "builtins.KeyError")
#   else:
#     pass
#   if torch.eq(n, 1):
#     ops.prim.RaiseException("", "builtins.ValueError")
#   else:
#     pass
#   ops.prim.RaiseException(str(("a", n)), "builtins.Exception")
#   return uninitialized(int)
