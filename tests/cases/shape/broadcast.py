# test shape
# Types of promotion and broadcasting follow the operators; nothing is known of the inputs.
def f(n: int):
    a = torch.zeros([n, 1])
    b = torch.ones([1, 4], dtype=torch.int64)
    c = a + b
    return c.sum(), c.sum(1), c[0], c > 0

# == shape
# %n.1 : int
# %4 : None
# %10 : int = 4
# %27 : bool = false
# %31 : int = 0
# %2 : int = 1
# %3 : [?, 1]
# %a.1 : Float(s0, 1) contiguous cpu
# %11 : [1, 4]
# %b.1 : Long(1, 4) contiguous cpu no_grad
# %c.1 : Float(s0, 4) contiguous cpu
# %23 : Float() contiguous cpu
# %26 : [1]
# %29 : Float(s0) contiguous cpu
# %33 : Float(4) cpu
# %36 : Bool(s0, 4) contiguous cpu no_grad
# %37 : (Float() contiguous cpu, Float(s0) contiguous cpu, Float(4) cpu, Bool(s0, 4) contiguous cpu no_grad)
# where s0 >= 0
