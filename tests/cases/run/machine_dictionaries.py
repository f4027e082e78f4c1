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


def kept(d: Dict[str, int]):
    e = {"a": 1}
    for key in d:
        e[key] = len(key)
    total = 0
    for key in e:
        total += len(key)
    return total, e

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
# code(v0): 6 words, 3 values
#    0  v1 = prim::DictConstruct("a", 1)
#    1  v0 = DictSeq move v0
#    2  s2 = DictLen v0                              ; may lock v0: the caller may hold it
#    3  s3 = 0
#    4  JILe s2, 0 -> 10
#    5  v2 = DictAtV v0, key s3                      ; may lock v0: the caller may hold it; v2 counted: the dictionary keeps it
#    6  s4 = StrLen v2
#    7  DictSetS v1, move v2, s4, else               ; no lock: v1 is the only handle
#    8  aten::_set_item.str(v1, move v2, s4)         ; s4 boxed: the kernel takes values; v1 counted: the next iteration uses it
#    9  EachNext 5, s3 -> 6                          ; may lock v0: the caller may hold it; v2 counted: the dictionary keeps it
#   10  Drop v0
#   11  v0 = DictSeq v1                              ; v1 counted: v0 keeps it
#   12  s2 = DictLen v0                              ; may lock v0: v1 holds it
#   13  s3 = 0; s4 = 0
#   14  JILe s2, 0 -> 20
#   15  v2 = DictAtV v0, key s4                      ; may lock v0: v1 holds it; v2 counted: the dictionary keeps it
#   16  s5 = StrLen v2
#   17  Drop v2
#   18  s3 = IAdd s3, s5
#   19  EachNext 15, s4 -> 16                        ; may lock v0: v1 holds it; v2 counted: the dictionary keeps it
#   20  Drop v0
#   21  v1 = prim::TupleConstruct(s3, move v1)       ; s3 boxed: the container holds values
#   22  Ret (move v1)
