# test bytecode
# A loop that ends with `break` or `return` has one comparing jump for it, and no flag.


def until(n: int):
    s = 0
    for i in range(n):
        if s > 100:
            break
        s += i
    return s


def find(items: List[int], wanted: int) -> int:
    for i in range(len(items)):
        if items[i] == wanted:
            return i
    return -1

# == bytecode
# code(s4): 10 words, 0 values
#    0  s6 = 0; s7 = 0
#    1  JILe s4, 0 -> 5
#    2  JILt 100, s6 -> 5
#    3  s6 = IAdd s6, s7
#    4  IAdd s7 += 1; JILt s7, s4 -> 2
#    5  Ret (s6)
# code(v0, s4): 14 words, 1 values
#    0  s5 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s7 = 0; s8 = 0
#    2  s9 = 0
#    3  JILe s5, 0 -> 11
#    4  s11 = Span v0                                ; may lock v0: the caller may hold it
#    5  s6 = SpanGet s11, s9                         ; the span of v0
#    6  JINe s6, s4 -> 9
#    7  s7 = 1; s8 = s9                              ; copied: the branch returns it
#    8  Jmp 11
#    9  s7 = 0; s8 = 0
#   10  s6 = SpanNext s11, s9 -> 6                   ; the span of v0
#   11  Drop v0
#   12  JFalse s7 -> 15
#   13  s7 = s8                                      ; copied: the branch returns it
#   14  Jmp 16
#   15  s7 = -1
#   16  Ret (s7)
