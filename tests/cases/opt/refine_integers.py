# test opt refine_integer_values,constant_propagation,dce
# Inside the branch, and after one that raises otherwise, an integer is the number it was compared with.
def main(n: int, m: int) -> int:
    if n == 4 and not m != 2:
        return n * m
    if m != 3:
        raise ValueError("three")
    return m + n

# run: main(4, 2) == 0
# run: main(4, 3) == 0
# run: main(1, 2) raises "three"
