# test run
# A sum multiplies its second operand by 1, which makes NaN of complex infinities: the order of operands is kept.


def sums(a, b):
    return a + (b + 0.5), (b + 0.5) + a

# run: sums(tensor([complex(inf, 1.0), complex(-0.0, -0.0), complex(1.5, inf)], c128), tensor([complex(1.0, 2.0), complex(-0.5, -0.0), complex(2.0, 1.0)], c128)) == (tensor([complex(inf, 3.0), complex(0.0, 0.0), complex(4.0, inf)], c128), tensor([complex(inf, nan), complex(0.0, 0.0), complex(nan, inf)], c128))
