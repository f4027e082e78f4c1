# test frontend
# What `item` gives is a number of unknown kind: a variable of a certain one does not take it.
def f(y: Tensor) -> int:
    n: int = y.item()  # error: is annotated with type int
    return n
