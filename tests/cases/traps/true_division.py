# test source
# `/` of integers is true division.
def f(a: int, b: int) -> float:
    return a / b

# run: f(7, 2) == 3.5
# run: f(6, 3) == 2.0

# == source
# def f(a: int,
#     b: int) -> float:
#   return torch.div(a, b)
