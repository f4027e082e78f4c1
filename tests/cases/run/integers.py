# test run
# Division and remainder round towards minus infinity; shifts and bit operations are those of 64-bit integers.
def div(a: int, b: int):
    return a // b, a % b

def bits(a: int, b: int):
    return a & b, a | b, a ^ b, a << 3, a >> 1

def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps

# run: div(7, 2) == (3, 1)
# run: div(-7, 2) == (-4, 1)
# run: div(7, -2) == (-4, -1)
# run: div(-7, -2) == (3, -1)
# run: div(7, 0) raises "division by 0"
# run: bits(12, 10) == (8, 14, 6, 96, 6)
# run: bits(-12, 10) == (0, -2, -2, -96, -6)
# run: collatz(27) == 111
