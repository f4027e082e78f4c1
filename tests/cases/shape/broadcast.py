# test shape
# Dtypes and sizes follow from promotion and broadcasting; the inputs are unknown.
def f(n: int):
    a = torch.zeros([n, 1])
    b = torch.ones([1, 4], dtype=torch.int64)
    c = a + b
    return c.sum(), c.sum(1), c[0], c > 0

# == shape
# %n.1 : int
# %25 : bool = false
# %4 : None
# %2 : int = 1
# %9 : int = 4
# %29 : int = 0
# %3 : [?, 1]
# %a.1 : Float(s0, 1) contiguous cpu
# %10 : [1, 4]
# %b.1 : Long(1, 4) contiguous cpu no_grad
# %c.1 : Float(s0, 4) cpu
# %22 : Float() contiguous cpu
# %24 : [1]
# %27 : Float(s0) contiguous cpu
# %31 : Float(4) cpu
# %33 : Bool(s0, 4) cpu no_grad
# %34 : (Float() contiguous cpu, Float(s0) contiguous cpu, Float(4) cpu, Bool(s0, 4) cpu no_grad)
# where s0 >= 0
