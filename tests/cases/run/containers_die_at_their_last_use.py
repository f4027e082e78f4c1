# test run
# The last read of a container or string: the result may take the register of the operand.

def f(x: Tensor, k: int, n: int):
    by_key = {k: x, k: x}
    text = "a" + str(n)
    text = text[0] + text
    names = {text: [x]}
    return by_key[k], names[text], text == "aa7"

# run: f(tensor([1.0, 2.0], f32), 2, 7) == (tensor([1.0, 2.0], f32), [tensor([1.0, 2.0], f32)], True)
