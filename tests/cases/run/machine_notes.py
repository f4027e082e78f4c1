# test bytecode
# The listing states why numbers are boxed, values counted, containers locked and words copied.

class Cell:
    last: Optional[int]

    def __init__(self, value: int):
        self.value = value
        self.last = None

def notes(cell: Cell, rows: List[List[float]], names: Dict[str, int], n: int):
    own: List[int] = []
    kept: List[List[int]] = []
    total = 0.0
    a, b = 0, 1
    for i in range(n):
        own.append(i)
        kept.append(own)
        row = rows[i]
        total += row[0] + len(row)
        cell.last = i
        cell.value += names["a"]
        a, b = b, a
        if cell.last is not None:
            total += 1.0
    return own, kept, (total, a, b)

# == bytecode
# code(v0, v1, v2, s3): 11 words, 6 values
#    0  v3 = prim::ListConstruct()
#    1  v4 = prim::ListConstruct()
#    2  s4 = 0; s5 = 0
#    3  s6 = 1; s7 = 0
#    4  JILe s3, 0 -> 31
#    5  AppendI v3, s7                               ; may lock v3: it may be reachable from outside
#    6  AppendV v4, v3                               ; no lock: v4 is the only handle; v3 counted: the list keeps it
#    7  v5 = ListGetV v1, s7                         ; may lock v1: the caller may hold it; v5 counted: the list keeps it
#    8  s8 = ListGetF v5, 0                          ; may lock v5: it may be reachable from outside
#    9  s9 = ListLen v5                              ; may lock v5: it may be reachable from outside
#   10  Drop v5
#   11  s9 = FAdd s8, (IToF s9)
#   12  s9 = FAdd s4, s9
#   13  SetSlot v0, 0, s7                            ; may lock v0: the caller may hold it; s7 boxed: the object keeps it as a value
#   14  s10 = GetWord v0, 1                          ; may lock v0: the caller may hold it
#   15  s8 = DictGetS v2, "a", else                  ; may lock v2: the caller may hold it
#   16  s8 = aten::__getitem__.Dict_str(v2, "a")     ; v2 counted: the next iteration uses it
#   17  s8 = IAdd s10, s8
#   18  SetSlot v0, 1, s8                            ; may lock v0: the caller may hold it; s8 boxed: the object keeps it as a value
#   19  v5 = GetSlot v0, 0                           ; may lock v0: the caller may hold it; v5 counted: the object keeps it; boxed: the type is int?
#   20  s8 = IsNot v5, None
#   21  Drop v5
#   22  JFalse s8 -> 28
#   23  s4 = FAdd s9, 1.
#   24  s9 = s5; s5 = s6                             ; copied: the loop carries it
#   25  s6 = s9                                      ; copied: the loop carries it
#   26  Next s7 < s3 -> 5
#   27  Jmp 31
#   28  s4 = s9; s9 = s5                             ; copied: the branch returns it
#   29  s5 = s6; s6 = s9                             ; copied: the loop carries it
#   30  Next s7 < s3 -> 5
#   31  Drop v0
#   32  Drop v2
#   33  Drop v1
#   34  v1 = prim::TupleConstruct(s4, s5, s6)        ; s4, s5, s6 boxed: the container holds values
#   35  v3 = prim::TupleConstruct(move v3, move v4, move v1)
#   36  Ret (move v3)
