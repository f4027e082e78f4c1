# test frontend
# A comprehension has one loop.
def f(a: List[int]) -> List[int]:
    return [x + y for x in a for y in a]  # error: a second `for` of a comprehension
