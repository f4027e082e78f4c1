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
#    1  s2 = aten::len.str(v0)
#    2  s3 = 0
#    3  s4 = 0
#    4  JILe s2, 0 -> 24
#    5  v3 = aten::__getitem__.str(v0, s4)
#    6  Fast DictContains, else
#    7  s5 = aten::__contains__.str(v2, v3)
#    8  JFalse s5 -> 18
#    9  Fast DictGet, else
#   10  s5 = aten::__getitem__.Dict_str(v2, v3)
#   11  s6 = ListGetNested v1, 0, s4, else
#   12  v4 = ListGetV v1, 0
#   13  s6 = ListGetI v4, s4
#   14  Drop v4
#   15  s6 = IAdd s5, s6
#   16  Fast DictSet, else
#   17  aten::_set_item.str(v2, v3, s6)
#   18  Fast StrNotEqual, else
#   19  s6 = aten::ne.str(move v3, "b")
#   20  JFalse s6 -> 23
#   21  s6 = IAdd s3, 1
#   22  s3 = s6
#   23  Next s4 < s2 -> 5
#   24  Drop v1
#   25  Drop v0
#   26  v2 = prim::TupleConstruct(move v2, s3)
#   27  Ret (move v2)
