# test bytecode
# The end of a loop over a list whose length the loop leaves as it is fetches the next element.


def total(items: List[float]):
    s = 0.0
    for x in items:
        s += x
    return s


def longest(words: List[str], known: Dict[str, int]):
    n = 0
    for word in words:
        if word not in known:
            continue
        if len(word) > n:
            n = len(word)
    return n


def grows(items: List[int]):
    for i in items:
        if i < 10:
            items.append(i + 1)
    return len(items)


def doubled(items: List[int]):
    for i in range(len(items)):
        items[i] = items[i] * 2
    return items

# == bytecode
# code(v0): 8 words, 1 values
#    0  s2 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s3 = 0; s4 = 0
#    2  JILe s2, 0 -> 7
#    3  s5 = Span v0                                 ; may lock v0: the caller may hold it
#    4  s7 = SpanGet s5, s4                          ; the span of v0
#    5  s3 = FAdd s3, s7
#    6  s7 = SpanNext s5, s4 -> 5                    ; the span of v0
#    7  Drop v0
#    8  Ret (s3)
# code(v0, v1): 8 words, 3 values
#    0  s3 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s5 = 0; s6 = 0
#    2  JILe s3, 0 -> 18
#    3  v2 = ListGetV v0, s6                         ; may lock v0: the caller may hold it; v2 counted: the list keeps it
#    4  s4 = DictHasS v1, v2, else                   ; performs the test 6; may lock v1: the caller may hold it
#    5  s4 = aten::__contains__.str(v1, v2)          ; v1 counted: the next iteration uses it; v2 counted: used later
#    6  JTrue s4 -> 10
#    7  Drop v2
#    8  v2 = ListNextV v0, s6 -> 4                   ; may lock v0: the caller may hold it; v2 counted: the list keeps it
#    9  Jmp 18
#   10  s4 = StrLen v2
#   11  JILe s4, s5 -> 16
#   12  s5 = StrLen v2
#   13  Drop v2
#   14  v2 = ListNextV v0, s6 -> 4                   ; may lock v0: the caller may hold it; v2 counted: the list keeps it
#   15  Jmp 18
#   16  Drop v2
#   17  v2 = ListNextV v0, s6 -> 4                   ; may lock v0: the caller may hold it; v2 counted: the list keeps it
#   18  Drop v1
#   19  Drop v0
#   20  Ret (s5)
# code(v0): 7 words, 1 values
#    0  s3 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s4 = 0
#    2  JILe s3, 0 -> 8
#    3  s5 = ListGetI v0, s4                         ; may lock v0: the caller may hold it
#    4  JILe 10, s5 -> 7
#    5  s6 = IAdd s5, 1
#    6  AppendI v0, s6                               ; may lock v0: the caller may hold it
#    7  Next s4 < s3 -> 3
#    8  s3 = ListLen v0                              ; may lock v0: the caller may hold it
#    9  Drop v0
#   10  Ret (s3)
# code(v0): 8 words, 1 values
#    0  s3 = ListLen v0                              ; may lock v0: the caller may hold it
#    1  s4 = 0
#    2  JILe s3, 0 -> 8
#    3  s5 = Span v0                                 ; may lock v0: the caller may hold it
#    4  s7 = SpanGet s5, s4                          ; the span of v0
#    5  s7 = IMul s7, 2
#    6  SpanSet s5, s4, s7                           ; the span of v0
#    7  s7 = SpanNext s5, s4 -> 5                    ; the span of v0
#    8  Ret (move v0)
