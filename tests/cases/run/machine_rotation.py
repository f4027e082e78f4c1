# test bytecode
# Values that a loop exchanges: the moves are one instruction.

def fibonacci(n: int):
    a = 0
    b = 1
    for i in range(n):
        t = a + b
        a = b
        b = t
    return a

# == bytecode
# code(s2): 7 words, 0 values
#    0  s3 = 0; s4 = 1
#    1  s5 = 0
#    2  JILe s2, 0 -> 6
#    3  s6 = IAdd s3, s4
#    4  s3 = s4; s4 = s6                             ; copied: the loop carries it
#    5  Next s5 < s2 -> 3
#    6  Ret (s3)
