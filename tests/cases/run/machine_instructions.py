# test bytecode
# Common cases of dictionaries and strings come before the calls of kernels; an element of a list in a list takes one
# instruction.

def count(text: str, rows: List[List[int]]):
    d: Dict[str, int] = {"a": 0}
    s = 0
    for i in range(len(text)):
        c = text[i]
        if c in d:
            d[c] += rows[0][i]
        if c != "b":
            s += 1
    return d, s

# == bytecode
# code(v0, v1): 7 words, 5 values
#    0  v2 = prim::DictConstruct("a", 0)
#    1  s2 = StrLen v0
#    2  s3 = 0; s4 = 0
#    3  JILe s2, 0 -> 22
#    4  v3 = StrGet v0, s4
#    5  s5 = DictHasS v2, v3, else                   ; performs the test 7; no lock: v2 is the only handle
#    6  s5 = aten::__contains__.str(v2, v3)          ; v2 counted: the next iteration uses it; v3 counted: used later
#    7  JFalse s5 -> 17
#    8  s5 = DictGetS v2, v3, else                   ; no lock: v2 is the only handle
#    9  s5 = aten::__getitem__.Dict_str(v2, v3)      ; v2 counted: the next iteration uses it; v3 counted: used later
#   10  s6 = ListGetNested v1, 0, s4, else           ; may lock v1: the caller may hold it
#   11  v4 = ListGetV v1, 0                          ; may lock v1: the caller may hold it; v4 counted: the list keeps it
#   12  s6 = ListGetI v4, s4                         ; may lock v4: it may be reachable from outside
#   13  Drop v4
#   14  s6 = IAdd s5, s6
#   15  DictSetS v2, v3, s6, else                    ; no lock: v2 is the only handle
#   16  aten::_set_item.str(v2, v3, s6)              ; s6 boxed: the kernel takes values; v2 counted: the next iteration uses it; v3 counted: used later
#   17  s6 = StrNe v3, "b"
#   18  Drop v3
#   19  JFalse s6 -> 21
#   20  s3 = IAdd s3, 1
#   21  v3 = StrNextV v0, s4 -> 5
#   22  Drop v1
#   23  Drop v0
#   24  v2 = prim::TupleConstruct(move v2, s3)       ; s3 boxed: the container holds values
#   25  Ret (move v2)
