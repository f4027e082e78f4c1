# test frontend
# Attributes of a class are those that `__init__` assigns.
class Counter:
    def __init__(self, n: int):
        self.n = n
    def add(self, k: int) -> int:
        self.total = k  # error: Tried to set nonexistent attribute: total
        return k
