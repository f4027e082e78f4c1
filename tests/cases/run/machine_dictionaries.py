# test bytecode
# Dictionaries with integers and strings as keys and numbers as values have instructions; a byte of a string is compared
# without a string of it; divisions by a power of two are shifts and masks.

def count(n: int):
    d: Dict[int, int] = {}
    for i in range(n):
        k = i % 64
        if k in d:
            d[k] += i // 8
        else:
            d[k] = 1
    return d

def vowels(text: str):
    n = 0
    for i in range(len(text)):
        if text[i] == "o":
            n += 1
    return n

# == bytecode
# code(s6): 11 words, 1 values
#    0  v0 = prim::DictConstruct()
#    1  s7 = 0
#    2  JILe s6, 0 -> 18
#    3  s8 = IAnd s7, 63
#    4  s9 = DictHasI v0, s8, else                   ; performs the test 6; no lock: v0 is the only handle
#    5  s9 = aten::__contains__.int(v0, s8)          ; s8 boxed: the kernel takes values; v0 counted: the next iteration uses it
#    6  JFalse s9 -> 15
#    7  s9 = DictGetI v0, s8, else                   ; no lock: v0 is the only handle
#    8  s9 = aten::__getitem__.Dict_int(v0, s8)      ; s8 boxed: the kernel takes values; v0 counted: the next iteration uses it
#    9  s10 = IShr s7, 3
#   10  s10 = IAdd s9, s10
#   11  DictSetI v0, s8, s10, else                   ; no lock: v0 is the only handle
#   12  aten::_set_item.int(v0, s8, s10)             ; s8, s10 boxed: the kernel takes values; v0 counted: the next iteration uses it
#   13  Next s7 < s6 -> 3
#   14  Jmp 18
#   15  DictSetI v0, s8, 1, else                     ; no lock: v0 is the only handle
#   16  aten::_set_item.int(v0, s8, 1)               ; s8 boxed: the kernel takes values; v0 counted: the next iteration uses it
#   17  Next s7 < s6 -> 3
#   18  Ret (move v0)
# code(v0): 7 words, 1 values
#    0  s3 = StrLen v0
#    1  s4 = 0; s5 = 0
#    2  JILe s3, 0 -> 7
#    3  s6 = StrByte v0, s5
#    4  JINe s6, 111 -> 6
#    5  s4 = IAdd s4, 1
#    6  s6 = StrNext v0, s5 -> 4
#    7  Drop v0
#    8  Ret (s4)
