# test source
# Integer division and remainder by zero are errors; true division gives infinity.
def mod(a: int, b: int) -> int:
    return a % b

def div(a: int, b: int) -> int:
    return a // b

def true_div(a: int, b: int) -> float:
    return a / b

# run: mod(1, 0) raises "modulo by 0"
# run: div(1, 0) raises "division by 0"
# run: true_div(1, 0) == inf
# run: true_div(-1, 0) == -inf

# == source
# def mod(a: int,
#     b: int) -> int:
#   return torch.remainder(a, b)
#
# def div(a: int,
#     b: int) -> int:
#   return torch.floordiv(a, b)
#
# def true_div(a: int,
#     b: int) -> float:
#   return torch.div(a, b)
