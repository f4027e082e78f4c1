# test frontend
# Decorators that replace a definition in Python are refused, and so are further base classes. Those that only mark a
# definition for the compiler are accepted.
@torch.jit.script
def marked(x: int) -> int:
    return x

@torch.jit.ignore  # error: the decorator `torch.jit.ignore` is not supported
def ignored(x: int) -> int:
    return x

@twice(3)  # error: this decorator is not supported
def called(x: int) -> int:
    return x

class Base:
    def __init__(self):
        self.n = 1

class Derived(object, Base):  # error: a class with several bases is not supported
    def __init__(self):
        self.n = 1

class Methods:
    def __init__(self):
        self.n = 1

    @classmethod  # error: the decorator `classmethod` is not supported
    def make(cls) -> int:
        return 1
