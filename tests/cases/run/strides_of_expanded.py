# test run
# The order of dimensions of a result is that of its operands, also if one of them is copied to be read along its rows. Results of
# PyTorch 2.6.
def f(x: Tensor, z: Tensor) -> List[List[int]]:
    y = x.as_strided([2, 5, 16, 33], [1, 0, 3, 48])
    return [(y + z).stride(), (y > z).stride(), (z + y).stride()]

# run: f(full([2000], 0, f32), full([2, 5, 16, 33], 0, f32)) == [[2640, 528, 1, 16], [2640, 528, 1, 16], [2640, 528, 33, 1]]
