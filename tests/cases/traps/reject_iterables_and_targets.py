# test frontend
# A loop has one iterable, a starred target is a variable, and lists of given length have a length.
def several(x):
    for i, j in [2, 3, 4], [5, 6, 7]:  # error: List of iterables is not supported currently
        x += i
    return x

def one(x: List[Tuple[int, int]]):
    for i, j in x,:
        print(i + j)
    return x

def starred():
    a, *1 = (3, 4, 5)  # error: Cannot pack a tuple into a non-variable
    return a

def length(x: BroadcastingListx[int]):  # error: subscript of Broadcastable list must be a positive integer
    return x

def constructor(x: Tuple[int, int[2]]):  # error: Unknown type constructor int
    return x

def hypotenuse(x):
    return math.hypot(x, 2.0)  # error: Python builtin <built-in function hypot> is currently not supported

class Counter:
    def __init__(self):
        self.x = 1

    def step(self):
        return self.x

def known():
    return hasattr(Counter, "step"), hasattr(Counter, "steps")

def of_number(x: int):
    return hasattr(x, "step")  # error: hasattr's first argument must be an object or NamedTuple, got int
