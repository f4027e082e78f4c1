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
# code(s4): 11 words, 0 values
#    0  s4 = IDistance 2, s4
#    1  s5 = 0; s6 = 2
#    2  JILe s4, 0 -> 19
#    3  s7 = IAdd 2, s4
#    4  s4 = IMul 2, 2; JIGt s4, s6 -> 7
#    5  s8 = 1; s9 = 2
#    6  Jmp 10
#    7  s5 = IAdd s5, 1
#    8  Next s6 < s7 -> 4
#    9  Jmp 19
#   10  s4 = IMod s6, s9; JINe s4, 0 -> 12
#   11  s8 = 0
#   12  s9 = IAdd s9, 1
#   13  s4 = IMul s9, s9; JIGt s4, s6 -> 16
#   14  s4 = s8                                      ; copied: the branch returns it
#   15  JTrue s4 -> 10
#   16  JFalse s8 -> 18
#   17  s5 = IAdd s5, 1
#   18  Next s6 < s7 -> 4
#   19  Ret (s5)
