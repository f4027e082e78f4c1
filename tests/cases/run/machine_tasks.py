# test bytecode
# A task that makes few calls without loops runs at its fork. Others run concurrently, and a frame without tasks passes a `Sync`.
def step(x: int) -> int:
    return x * 3 + 1

def twice(x: int) -> int:
    return step(step(x))

def often(x: int) -> int:
    return twice(twice(twice(twice(x))))

def total(l: List[int]) -> int:
    s = 0
    for x in l:
        s += x
    return s

def f(n: int, l: List[int]) -> int:
    a = torch.jit.fork(twice, n)
    b = torch.jit.fork(often, n)
    c = torch.jit.fork(total, l)
    for i in range(n):
        l[i % 3] = i
    return torch.jit.wait(a) + torch.jit.wait(b) + torch.jit.wait(c) + l[0]

# run: f(0, [1, 2, 3]) == 3291
# run: f(4, [1, 2, 3]) == 29573

# == bytecode
# code(s3): 4 words, 0 values
#    0  s3 = IAdd (IMul s3, 3), 1
#    1  Ret (s3)
# code(s1): 2 words, 0 values
#    0  Call s1 = step(s1)
#    1  Call s1 = step(s1)
#    2  Ret (s1)
# code(s1): 2 words, 0 values
#    0  Call s1 = twice(s1)
#    1  Call s1 = twice(s1)
#    2  Call s1 = twice(s1)
#    3  Call s1 = twice(s1)
#    4  Ret (s1)
# code(v0): 8 words, 1 values
#    0  s2 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s3 = 0; s4 = 0
#    2  JILe s2, 0 -> 7
#    3  s5 = Span v0                                 ; may lock v0: the caller may hold it
#    4  s7 = SpanGet s5, s4                          ; the span of v0
#    5  s3 = IAdd s3, s7
#    6  s7 = SpanNext s5, s4 -> 5                    ; the span of v0
#    7  Drop v0
#    8  Ret (s3)
# code(s4, v0): 9 words, 4 values
#    0  Sync
#    1  Call v1 = prim::fork(s4)
#    2  Call concurrent v2 = prim::fork(s4)
#    3  Call concurrent v3 = prim::fork(v0)          ; v0 counted: used later
#    4  s5 = 0
#    5  JILe s4, 0 -> 11
#    6  s6 = Span v0                                 ; may lock v0: the caller may hold it
#    7  s8 = IModBy s5, 3
#    8  Sync
#    9  SpanSet s6, s8, s5                           ; the span of v0
#   10  Next s5 < s4 -> 7
#   11  Join v1
#   12  s4 = aten::wait(move v1)
#   13  Join v2
#   14  s7 = aten::wait(move v2)
#   15  s7 = IAdd s4, s7
#   16  Join v3
#   17  s4 = aten::wait(move v3)
#   18  s4 = IAdd s7, s4
#   19  s7 = ListGetI v0, 0                          ; may lock v0: the caller may hold it
#   20  Drop v0
#   21  s7 = IAdd s4, s7
#   22  Ret (s7)
