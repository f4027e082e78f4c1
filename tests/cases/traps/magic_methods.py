# test run
# Operators call methods of the left operand's class only.
class Money:
    cents: int
    def __init__(self, cents: int):
        self.cents = cents
    def __add__(self, other: int) -> int:
        return self.cents + other
    def __lt__(self, other: "Money") -> bool:
        return self.cents < other.cents
    def __contains__(self, x: int) -> bool:
        return x == self.cents
    def __getitem__(self, i: int) -> int:
        return self.cents * i
    def __len__(self) -> int:
        return 9
    def __call__(self, x: int) -> int:
        return x - self.cents
    def __neg__(self) -> int:
        return -self.cents
    def __bool__(self) -> bool:
        return self.cents > 0
    def __str__(self) -> str:
        return "money"

def f(n: int) -> Tuple[int, bool, bool, int, int, int, int, bool, str]:
    m = Money(n)
    return m + 1, m < Money(5), n in m, m[2], len(m), m(1), -m, bool(m), str(m)

# run: f(3) == (4, True, True, 6, 9, -2, -3, True, "money")
