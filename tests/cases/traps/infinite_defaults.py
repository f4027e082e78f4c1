# test run
# Defaults are constants, also infinite ones; a comment with types has one for each parameter.
def g(a: int, most: float = float("inf"), least: float = -math.inf) -> bool:
    return least < a and a < most

def f(a: int) -> bool:
    return g(a)

# run: f(3) == True
