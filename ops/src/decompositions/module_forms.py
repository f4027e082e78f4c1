# Operators of exported programs that modules of TorchScript cannot have as they are: PyTorch's JIT removes calls without results
# as dead code, and some overloads are hidden by earlier ones. The functions take their place when a program becomes a module; the
# head of `core_aten.py` describes the comments.

# replaces aten::_assert_scalar
def _assert_scalar(self: bool, assert_msg: str):
    if not self:
        raise RuntimeError(assert_msg)

# replaces aten::_assert_async
def _assert_async(self: Tensor):
    if not bool(self):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero")

# replaces aten::_assert_async.msg
def _assert_async_msg(self: Tensor, assert_msg: str):
    if not bool(self):
        raise RuntimeError(assert_msg)

def _check_range(size: int, min: int, max: int):
    if size < min or size > max:
        raise RuntimeError("Invalid value range for {} between [{}, {}].".format(size, min, max))

# replaces aten::sym_constrain_range
def sym_constrain_range(size: int, *, min: Optional[int], max: Optional[int]):
    least = -9223372036854775807 - 1 if min is None else min
    _check_range(size, least, 9223372036854775807 if max is None else max)

# replaces aten::sym_constrain_range_for_size
def sym_constrain_range_for_size(size: int, *, min: Optional[int], max: Optional[int]):
    _check_range(size, 0 if min is None else min, 9223372036854775807 if max is None else max)

# replaces aten::_assert_tensor_metadata
def _assert_tensor_metadata(a: Tensor, size: Optional[List[int]], stride: Optional[List[int]], dtype: Optional[int], *, device: Optional[Device], layout: Optional[int]):
    if size is not None:
        if a.size() != size:
            raise RuntimeError("Tensor sizes mismatch! Expected: {}, Got: {}".format(size, a.size()))
    if stride is not None:
        if a.stride() != stride:
            raise RuntimeError("Tensor strides mismatch! Expected: {}, Got: {}".format(stride, a.stride()))
    if dtype is not None:
        if a.dtype != dtype:
            raise RuntimeError("Tensor dtype mismatch!")
    if device is not None:
        if a.device != device:
            raise RuntimeError("Tensor device mismatch! Expected: {}, Got: {}".format(device, a.device))
    if layout is not None:
        if a.layout != layout:
            raise RuntimeError("Tensor layout mismatch!")

# An earlier overload returns a float for two integers.
# replaces aten::pow.int_to_int
def pow_int_to_int(a: int, b: int) -> int:
    power = 1
    for i in range(b):
        power = power * a
    return power
