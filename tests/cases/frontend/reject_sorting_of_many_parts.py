# test frontend
# A few lines define a type of many thousand parts, which are compared one by one if objects are among them: such a sort is
# refused at compile time. Without objects, a kernel compares the parts.
class P:
    def __init__(self, n: int):
        self.n = n
    def __lt__(self, other: P) -> bool:
        return self.n < other.n

class T0(NamedTuple):
    a: P
    b: P

class T1(NamedTuple):
    a: T0
    b: T0

class T2(NamedTuple):
    a: T1
    b: T1

class T3(NamedTuple):
    a: T2
    b: T2

class T4(NamedTuple):
    a: T3
    b: T3

class T5(NamedTuple):
    a: T4
    b: T4

class T6(NamedTuple):
    a: T5
    b: T5

class T7(NamedTuple):
    a: T6
    b: T6

class T8(NamedTuple):
    a: T7
    b: T7

class T9(NamedTuple):
    a: T8
    b: T8

class T10(NamedTuple):
    a: T9
    b: T9

class T11(NamedTuple):
    a: T10
    b: T10

class T12(NamedTuple):
    a: T11
    b: T11

class T13(NamedTuple):
    a: T12
    b: T12

class N0(NamedTuple):
    a: int
    b: int

class N1(NamedTuple):
    a: N0
    b: N0

class N2(NamedTuple):
    a: N1
    b: N1

class N3(NamedTuple):
    a: N2
    b: N2

class N4(NamedTuple):
    a: N3
    b: N3

class N5(NamedTuple):
    a: N4
    b: N4

class N6(NamedTuple):
    a: N5
    b: N5

class N7(NamedTuple):
    a: N6
    b: N6

class N8(NamedTuple):
    a: N7
    b: N7

class N9(NamedTuple):
    a: N8
    b: N8

class N10(NamedTuple):
    a: N9
    b: N9

class N11(NamedTuple):
    a: N10
    b: N10

class N12(NamedTuple):
    a: N11
    b: N11

class N13(NamedTuple):
    a: N12
    b: N12

def numbers(x: List[N13]) -> List[N13]:
    return sorted(x)

def objects(x: List[T13]) -> List[T13]:
    return sorted(x)  # error: sorting of elements with more than 512 parts is not supported

def few(x: List[T3]) -> List[T3]:
    return sorted(x)
