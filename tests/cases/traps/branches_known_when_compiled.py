# test run
# If a condition is known at compile time, only the branch that is taken is compiled.
def f(x: int) -> int:
    if isinstance(x, str):
        return x.upper()
    if x is None:
        return no_such_function(x)
    if torch.jit.is_scripting():
        return x + 1
    return undefined

def g(x: Optional[int], flag: bool) -> int:
    if isinstance(x, int) and flag:
        return x
    return -1

# run: f(2) == 3
# run: g(2, True) == 2
# run: g(None, True) == -1
