# test bytecode
# Jumps to a test whose outcome is known go to the target of the test; a comparison that is only tested is a jump; an
# operation computes the value that a loop carries in its register; two moves are one instruction.

def count_primes(n: int):
    c = 0
    for k in range(2, n):
        i = 2
        prime = True
        while i * i <= k and prime:
            if k % i == 0:
                prime = False
            i += 1
        if prime:
            c += 1
    return c

# == bytecode
# code(s4): 12 words, 0 values
#    0  s4 = aten::__range_length(2, s4, 1)          ; s4 boxed: the kernel takes values
#    1  s5 = 0; s6 = 0
#    2  JILe s4, 0 -> 19
#    3  s7 = IAdd s6, 2
#    4  s8 = IMul 2, 2; JIGt s8, s7 -> 7
#    5  s9 = 1; s10 = 2
#    6  Jmp 10
#    7  s5 = IAdd s5, 1
#    8  Next s6 < s4 -> 3
#    9  Jmp 19
#   10  s8 = IMod s7, s10; JINe s8, 0 -> 12
#   11  s9 = 0
#   12  s10 = IAdd s10, 1
#   13  s8 = IMul s10, s10; JIGt s8, s7 -> 16
#   14  s8 = s9                                      ; copied: the branch returns it
#   15  JTrue s8 -> 10
#   16  JFalse s9 -> 18
#   17  s5 = IAdd s5, 1
#   18  Next s6 < s4 -> 3
#   19  Ret (s5)
