# test run
# Reading a conjugate after a write to its operand is refused, because it is a copy here. Without writes it is correct.
def main(x: Tensor, write: bool):
    y = x.conj()
    if write:
        x.mul_(2)
    return y
def H(x: Tensor):
    x.mul_(2)
    return x.mH, x.H.conj()

# run: H(tensor([[complex(1.0, 2.0), complex(0.0, 1.0)], [complex(3.0, 0.0), complex(1.0, -1.0)]])) == (tensor([[complex(2.0, -4.0), complex(6.0, 0.0)], [complex(0.0, -2.0), complex(2.0, 2.0)]]), tensor([[complex(2.0, 4.0), complex(6.0, 0.0)], [complex(0.0, 2.0), complex(2.0, -2.0)]]))
# run: main(tensor([2.0]), True) == tensor([4.0])
