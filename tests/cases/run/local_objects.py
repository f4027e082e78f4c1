# test run
# The attributes of an object that does not escape become values: carried by the loop, and results of the branch
# (pass `scalar_replacement`).

class Counter(object):
    def __init__(self, start: int):
        self.value = start
        self.odd = 0

    def add(self, x: int) -> int:
        self.value = self.value + x
        if x % 2 == 1:
            self.odd += 1
        return self.value


def main(n: int):
    c = Counter(1)
    s = 0
    for i in range(n):
        s += c.add(i)
    return s, c.odd


# run: main(0) == (0, 0)
# run: main(5) == (25, 2)
