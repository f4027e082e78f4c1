# test frontend
# An attribute that begins as None is None for ever, unless it is annotated.
class Box:
    def __init__(self, n: int):
        self.held = None
    def put(self, n: int) -> int:
        self.held = n  # error: Expected NoneType but got int
        return n
