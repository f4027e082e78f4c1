# test bytecode
# The end of a loop over two sequences fetches the next element of both, that of a loop over a string the next byte. A loop over a
# range counts from its start.


def dot(xs: List[int], ys: List[float]):
    s = 0.0
    for i in range(min(len(xs), len(ys))):
        s += xs[i] * ys[i]
    return s


def differences(xs: List[int]):
    s = 0
    for i in range(1, len(xs)):
        s += abs(xs[i] - xs[i - 1])
    return s


def scan(text: str):
    words, vowels, between = 0, 0, True
    for c in text:
        if c == " ":
            between = True
        elif between:
            words += 1
            between = False
        if c in "aeiou":
            vowels += 1
    return words, vowels


def is_number(text: str):
    for i in range(len(text)):
        if text[i] not in "0123456789":
            return False
    return text != ""


def counts(text: str):
    known = {"a": 0, "b": 0}
    for c in text:
        if c in known:
            known["a"] += known[c] + 1
    return known["a"]


def weights(known: Dict[str, float]):
    s = 0.0
    for name, weight in known.items():
        s += weight * len(name)
    return s

# == bytecode
# code(v0, v1): 12 words, 2 values
#    0  s2 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s3 = ListLen v1                              ; may lock v1: the caller may hold it
#    2  s3 = IMin s2, s3
#    3  s2 = 0; s4 = 0
#    4  JILe s3, 0 -> 12
#    5  s5 = Span v0                                 ; may lock v0: the caller may hold it
#    6  s7 = Span v1                                 ; may lock v1: the caller may hold it
#    7  s9 = SpanGet s5, s4                          ; the span of v0
#    8  s10 = SpanGet s7, s4                         ; the span of v1
#    9  s11 = IToF s9
#   10  s2 = FAdd s2, (FMul s11, s10)
#   11  EachNext 7, 8, s4 -> 9                       ; the span of v0; the span of v1
#   12  Drop v1
#   13  Drop v0
#   14  Ret (s2)
# code(v0): 11 words, 1 values
#    0  s3 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s3 = IDistance 1, s3
#    2  s4 = 0; s5 = 1
#    3  JILe s3, 0 -> 13
#    4  s6 = IAdd 1, s3
#    5  s7 = Span v0                                 ; may lock v0: the caller may hold it
#    6  s3 = SpanGet s7, s5                          ; the span of v0
#    7  s9 = IAdd s5, -1
#    8  s10 = SpanGet s7, s9                         ; the span of v0
#    9  s10 = ISub s3, s10
#   10  s10 = IAbs s10
#   11  s4 = IAdd s4, s10
#   12  s3 = SpanNext s7, s5 -> 7                    ; the span of v0
#   13  Drop v0
#   14  Ret (s4)
# code(v0): 12 words, 1 values
#    0  s4 = StrLen v0
#    1  s5 = 0; s6 = 0
#    2  s7 = 1; s8 = 0
#    3  JILe s4, 0 -> 19
#    4  s9 = StrByte v0, s8
#    5  JINe s9, 32 -> 8
#    6  s7 = 1
#    7  Jmp 14
#    8  JFalse s7 -> 12
#    9  s5 = IAdd s5, 1
#   10  s11 = 0
#   11  Jmp 13
#   12  s11 = s7                                     ; copied: the branch returns it
#   13  s7 = s11                                     ; copied: the branch returns it
#   14  s11 = StrLen "aeiou"
#   15  s11 = StrFind "aeiou", s9
#   16  JIEq s11, -1 -> 18
#   17  s6 = IAdd s6, 1
#   18  s9 = StrNext v0, s8 -> 5
#   19  Drop v0
#   20  v0 = prim::TupleConstruct(s5, s6)            ; s5, s6 boxed: the container holds values
#   21  Ret (move v0)
# code(v0): 11 words, 1 values
#    0  s4 = StrLen v0
#    1  s8 = 0
#    2  JILe s4, 0 -> 10
#    3  s5 = StrByte v0, s8
#    4  s10 = StrLen "0123456789"
#    5  s10 = StrFind "0123456789", s5
#    6  JINe s10, -1 -> 9
#    7  s6 = 0
#    8  Jmp 11
#    9  s5 = StrNext v0, s8 -> 4
#   10  Jmp 13
#   11  Drop v0
#   12  Jmp 15
#   13  s6 = StrNe v0, ""
#   14  Drop v0
#   15  Ret (s6)
# code(v0): 6 words, 3 values
#    0  v1 = prim::DictConstruct("a", 0, "b", 0)
#    1  s2 = StrLen v0
#    2  s3 = 0
#    3  JILe s2, 0 -> 19
#    4  v2 = StrGet v0, s3
#    5  s4 = DictHasS v1, v2, else                   ; performs the test 7; no lock: v1 is the only handle
#    6  s4 = aten::__contains__.str(v1, v2)          ; v1 counted: the next iteration uses it; v2 counted: used later
#    7  JFalse s4 -> 17
#    8  s4 = DictGetS v1, "a", else                  ; no lock: v1 is the only handle
#    9  s4 = aten::__getitem__.Dict_str(v1, "a")     ; v1 counted: the next iteration uses it
#   10  s5 = DictGetS v1, move v2, else              ; no lock: v1 is the only handle
#   11  s5 = aten::__getitem__.Dict_str(v1, move v2) ; v1 counted: the next iteration uses it
#   12  s5 = IAdd (IAdd s5, 1), s4
#   13  DictSetS v1, "a", s5, else                   ; no lock: v1 is the only handle
#   14  aten::_set_item.str(v1, "a", s5)             ; s5 boxed: the kernel takes values; v1 counted: the next iteration uses it
#   15  v2 = StrNextV v0, s3 -> 5
#   16  Jmp 19
#   17  Drop v2
#   18  v2 = StrNextV v0, s3 -> 5
#   19  Drop v0
#   20  Fast DictGet, else                           ; no lock: v1 is the only handle
#   21  s2 = aten::__getitem__.Dict_str(move v1, "a")
#   22  Ret (s2)
# code(v0): 8 words, 2 values
#    0  v0 = DictSeq move v0
#    1  s2 = DictLen v0                              ; may lock v0: the caller may hold it
#    2  s3 = 0; s4 = 0
#    3  JILe s2, 0 -> 11
#    4  v1 = DictAtV v0, key s4                      ; may lock v0: the caller may hold it; v1 counted: the dictionary keeps it
#    5  s5 = DictAt v0, value s4                     ; may lock v0: the caller may hold it
#    6  s6 = StrLen v1
#    7  Drop v1
#    8  s7 = IToF s6
#    9  s3 = FAdd s3, (FMul s5, s7)
#   10  EachNext 4, 5, s4 -> 6                       ; may lock v0: the caller may hold it; v1 counted: the dictionary keeps it; may lock v0: the caller may hold it
#   11  Drop v0
#   12  Ret (s3)
