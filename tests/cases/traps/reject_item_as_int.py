# test frontend
# The result of `item` is a number of unknown kind, which cannot be assigned to a variable of one kind.
def f(y: Tensor) -> int:
    n: int = y.item()  # error: is annotated with type int
    return n
