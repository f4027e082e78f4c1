# test frontend
# An attribute initialized with None has type None, unless it is annotated.
class Box:
    def __init__(self, n: int):
        self.held = None
    def put(self, n: int) -> int:
        self.held = n  # error: Expected NoneType but got int
        return n
