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
# code(v0, s4): 12 words, 1 values
#    0  s5 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s7 = 0; s8 = 0
#    2  s9 = 0
#    3  JILe s5, 0 -> 10
#    4  s6 = ListGetI v0, s9                         ; may lock v0: the caller may hold it
#    5  JINe s6, s4 -> 8
#    6  s7 = 1; s8 = s9                              ; copied: the branch returns it
#    7  Jmp 10
#    8  s7 = 0; s8 = 0
#    9  s6 = ListNext v0, s9 -> 5                    ; may lock v0: the caller may hold it
#   10  Drop v0
#   11  JFalse s7 -> 14
#   12  s7 = s8                                      ; copied: the branch returns it
#   13  Jmp 15
#   14  s7 = -1
#   15  Ret (s7)
