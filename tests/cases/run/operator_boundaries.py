# test run
# Boundary cases of operators: infinite parameters and elements, nothing to compute, rows without variance.
def celu(x: Tensor, alpha: float):
    return torch.celu(x, alpha)


def elu(x: Tensor, alpha: float, scale: float, input_scale: float):
    return torch._C._nn.elu(x, alpha, scale, input_scale)


def softshrink(x: Tensor, lambd: float):
    return torch._C._nn.softshrink(x, lambd)


def part(x: Tensor, q: float, how: str):
    return torch.quantile(x, q, interpolation=how), torch.nanquantile(x, q, interpolation=how)


def rounded(x: Tensor, y: int):
    return torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor"), x // y, x % y, torch.fmod(x, y)


def rounded_by(x: Tensor, y: Tensor):
    return torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor"), x // y, x % y, torch.fmod(x, y)


def spread(x: Tensor, w: Tensor, stride: List[int], padding: List[int], more: List[int], dilation: List[int]):
    return torch.conv_transpose2d(x, w, None, stride, padding, more, 1, dilation).shape


def spread_in_space(x: Tensor, w: Tensor, stride: List[int], padding: List[int], more: List[int], dilation: List[int]):
    return torch.conv_transpose3d(x, w, None, stride, padding, more, 1, dilation).shape


def masked(mask: Tensor):
    x = torch.zeros([1, 3])
    x.expand([3, 3]).masked_fill_(mask, 1.0)
    return x


def masked_columns(mask: Tensor):
    x = torch.zeros([3, 1])
    x.expand([3, 3]).masked_fill_(mask, torch.tensor(2.0))
    return x


def pooled(x: Tensor, kernel: List[int], stride: List[int], padding: List[int], dilation: List[int]):
    return torch.max_pool2d(x, kernel, stride, padding, dilation).shape


def pooled_line(x: Tensor, kernel: int, padding: int, dilation: int):
    return torch.max_pool1d(x, kernel, 1, padding, dilation).shape, torch.max_pool1d_with_indices(x, kernel, 1, padding, dilation)[1].shape


def padded(x: Tensor, pad: List[int]):
    return torch.nn.functional.pad(x, pad)


def mirrored(x: Tensor, pad: List[int], mode: str):
    return torch.nn.functional.pad(x, pad, mode)


def infinite(x: Tensor, negative: bool):
    return torch.isneginf(x) if negative else torch.isposinf(x)


def heads(qkv: Tensor, bias: Tensor, num_heads: int):
    return torch._transform_bias_rescale_qkv(qkv, bias, num_heads)


def whole(x: Tensor):
    return int(x)


def layer(value: float, n: int, weight: Optional[Tensor]):
    x = torch.full([2, n], value)
    return torch.layer_norm(x, [n], weight)[0, :2]


def layer_stats(value: float, n: int):
    out, mean, inverse = torch.native_layer_norm(torch.full([1, n], value), [n], None, None, 1e-5)
    return out[0, :2], mean, inverse


def groups(value: float, n: int):
    return torch.group_norm(torch.full([1, 4, n], value), 2)[0, 0, :2]


def chained(a: Tensor, b: Tensor, c: Tensor):
    return torch.linalg.multi_dot([a, b, c]), torch.chain_matmul(a, b, c)


def uncounted(x: Tensor, a: Tensor, b: Tensor):
    return torch.addmm(x, a, b, alpha=0), torch.addmv(x[0], a, b[0], alpha=0), torch.addbmm(x, a.unsqueeze(0), b.unsqueeze(0), beta=2, alpha=0)


def near(x: Tensor, rtol: float, atol: float):
    return torch.isclose(x, x, rtol, atol), torch.allclose(x, x, rtol, atol)


def limited(x: Tensor, low: float, high: float):
    return torch.nn.functional.hardtanh(x, low, high)


def surrounded(x: Tensor, pad: List[int], value: float):
    return torch.nn.functional.pad(x, pad, value=value)


def pooled_beyond_half():
    # Only the sizes of the result are used, which a rule knows if the call is valid.
    return torch.max_pool2d(torch.ones([1, 3, 3, 14]), [2, 2], [3, 3], [2, 1], [3, 1], False).size()

# run: celu(tensor([-1.0, 0.0, 1.0, inf, -inf, nan], f32), inf) ~= tensor([nan, nan, 1.0, inf, nan, nan], f32)
# run: celu(tensor([-1.0, 0.0, 1.0, inf, -inf, nan], f32), -2.0) ~= tensor([-1.2974424, -0.0, 1.0, inf, -inf, nan], f32)
# run: celu(tensor([-1.0, 0.0, 1.0, inf, -inf, nan], f64), nan) ~= tensor([nan, nan, 1.0, inf, nan, nan], f64)
# run: celu(tensor([-1.0, 1.0], f32), 0.0) raises "ZeroDivisionError: alpha cannot be 0 for CELU"
# run: celu(full([0], 0, f32), 0.0) raises "ZeroDivisionError: alpha cannot be 0 for CELU"
# run: elu(tensor([-1.0, 0.0, 1.0, -inf], f32), inf, 1.0, 1.0) ~= tensor([-inf, nan, 1.0, -inf], f32)
# run: elu(tensor([-1.0, 0.0, 1.0, -inf], f32), 1.0, inf, 0.0) ~= tensor([nan, nan, inf, nan], f32)
# run: softshrink(tensor([1.0], f32), nan) raises "lambda must be greater or equal to 0, but found to be NaN."
# run: part(tensor(-inf, f32), 1.0, "lower") ~= (tensor(-inf, f32), tensor(-inf, f32))
# run: part(tensor([1.0, inf], f32), 1.0, "nearest") ~= (tensor(inf, f32), tensor(inf, f32))
# run: part(tensor([-inf, 1.0], f32), 0.25, "lower") ~= (tensor(-inf, f32), tensor(-inf, f32))
# run: part(tensor([-inf, 1.0], f32), 0.25, "higher") ~= (tensor(1.0, f32), tensor(1.0, f32))
# run: part(tensor([-inf, 1.0, inf], f64), 0.5, "midpoint") ~= (tensor(1.0, f64), tensor(1.0, f64))
# run: part(tensor([-inf, 1.0, inf, nan], f64), 0.5, "lower") ~= (tensor(nan, f64), tensor(1.0, f64))
# run: rounded(full([0], 0, i64), 0) == (full([0], 0, i64), full([0], 0, i64), full([0], 0, i64), full([0], 0, i64), full([0], 0, i64))
# run: rounded(full([2, 0], 0, u8), 0) == (full([2, 0], 0, u8), full([2, 0], 0, u8), full([2, 0], 0, u8), full([2, 0], 0, u8), full([2, 0], 0, u8))
# run: rounded(tensor([1], i64), 0) raises "ZeroDivisionError"
# run: rounded_by(full([2, 0], 0, i64), tensor([[0], [1]], i64)) == (full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64))
# run: rounded_by(tensor([[1], [2]], i64), full([0], 0, i32)) == (full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64), full([2, 0], 0, i64))
# run: rounded_by(tensor([1, 2], i64), tensor([1, 0], i64)) raises "ZeroDivisionError"
# run: spread(full([0, 1, 6, 6], 1, f32), full([1, 3, 2, 4], 1, f32), [3, 1], [2, 0], [1, 1], [2, 1]) == [0, 3, 15, 10]
# run: spread(full([2, 1, 6, 6], 1, f32), full([1, 3, 2, 4], 1, f32), [3, 1], [2, 0], [1, 1], [2, 1]) raises "output padding must be smaller than either stride or dilation, but got output_padding_height: 1 output_padding_width: 1 stride_height: 3 stride_width: 1 dilation_height: 2 dilation_width: 1"
# run: spread(full([2, 2, 1, 3], 1, f32), full([2, 3, 2, 2], 1, f32), [1, 1], [1, 0], [0, 0], [1, 1]) == [2, 3, 0, 4]
# run: spread(full([2, 2, 1, 3], 1, f32), full([2, 3, 2, 2], 1, f32), [1, 1], [2, 0], [0, 0], [1, 1]) raises "Given input size per channel: [1, 3]. Calculated output size per channel: -2 at dimension 0. Output size is too small"
# run: spread(full([2, 2, 1, 3], 1, f64), full([2, 3, 2, 2], 1, f64), [1, 1], [1, 0], [0, 0], [1, 1]) raises "Given input size per channel: (1 x 3). Calculated output size per channel: (0 x 4). Output size is too small"
# run: spread(full([0, 2, 1, 3], 1, f64), full([2, 3, 2, 2], 1, f64), [1, 1], [1, 0], [0, 0], [1, 1]) == [0, 3, 0, 4]
# run: spread(full([2, 2, 1, 3], 1, bf16), full([2, 3, 2, 2], 1, bf16), [1, 1], [1, 0], [0, 0], [1, 1]) == [2, 3, 0, 4]
# run: spread(full([1, 2, 1, 3], 1, f32), full([2, 3, 2, 2], 1, f32), [1, 1], [1, 0], [0, 0], [1, 1]) raises "Given input size per channel: (1 x 3). Calculated output size per channel: (0 x 4). Output size is too small"
# run: spread_in_space(full([2, 2, 2, 4, 1], 1, f32), full([2, 3, 2, 3, 2], 1, f32), [2, 3, 3], [1, 2, 2], [0, 0, 1], [1, 1, 2]) == [2, 3, 2, 8, 0]
# run: masked(tensor([[True, False, False], [False, False, False], [False, True, False]])) ~= tensor([[1.0, 1.0, 0.0]], f32)
# run: masked(tensor([False, False, True])) ~= tensor([[0.0, 0.0, 1.0]], f32)
# run: masked_columns(tensor([[True, False, False], [False, False, False], [False, True, False]])) ~= tensor([[2.0], [0.0], [2.0]], f32)
# run: pooled(full([1, 3, 3, 14], 1, f32), [2, 2], [3, 3], [2, 1], [3, 1]) raises "pad should be smaller than or equal to half of kernel size, but got padW = 1, padH = 2, kW = 2, kH = 2"
# run: pooled(full([1, 3, 9, 14], 1, f32), [2, 3], [3, 3], [1, 1], [3, 2]) == [1, 3, 3, 4]
# run: pooled_line(full([1, 3, 9], 1, f32), 2, 2, 3) raises "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2"
# run: pooled_line(full([1, 3, 9], 1, f32), 3, 1, 3) == ([1, 3, 5], [1, 3, 5])
# run: padded(full([1, 1, 2], 1, f32), [1, 1, 5, 3, 0, -1]) raises "The input size 1, plus negative padding 0 and -1 resulted in a negative output size, which is invalid. Check dimension 0 of your input."
# run: padded(full([1, 1, 2], 1, f32), [0, 0, -1, 0]) ~= full([1, 0, 2], 0, f32)
# run: padded(full([1, 1, 2], 1, f32), [1, 0, -1, 0]) raises "The input size 1, plus negative padding -1 and 0 resulted in a negative output size, which is invalid. Check dimension 1 of your input."
# run: padded(full([1, 1, 2], 1, f32), [-2, 2]) ~= tensor([[[0.0, 0.0]]], f32)
# run: padded(full([1, 1, 2], 1, f32), [-3, 3]) raises "narrow(): length must be non-negative: -3 and 3 of dimension 2"
# run: padded(full([0, 2], 1, f32), [1, 1]) ~= full([0, 4], 0, f32)
# run: padded(full([0, 2], 1, f32), [1, 1, 0, 0]) raises "The input size 0, plus negative padding 0 and 0 resulted in a negative output size, which is invalid. Check dimension 0 of your input."
# run: padded(full([2, 0], 1, f32), [0, 0, 1, 0]) raises "The input size 0, plus negative padding 0 and 0 resulted in a negative output size, which is invalid. Check dimension 1 of your input."
# run: padded(full([2, 0], 1, f32), [-1, 1, 1, 0]) raises "The input size 0, plus negative padding -1 and 1 resulted in a negative output size, which is invalid. Check dimension 1 of your input."
# run: mirrored(iota([1, 1, 2], f32), [0, -2], "reflect") raises "input [1, 1, 2] is too small. Calculated output [1, 1, 0]"
# run: mirrored(iota([1, 1, 4], f32), [-5, 3], "reflect") ~= tensor([[[1.0, 0.0]]], f32)
# run: mirrored(iota([1, 1, 4], f32), [-5, 3], "replicate") ~= tensor([[[3.0, 3.0]]], f32)
# run: mirrored(iota([1, 1, 4], f32), [-2, -2], "replicate") raises "input [1, 1, 4] is too small. Calculated output [1, 1, 0]"
# run: mirrored(iota([1, 2, 3, 4], f32), [1, 1, -3, 0], "reflect") ~= full([1, 2, 0, 6], 0, f32)
# run: mirrored(iota([1, 1, 4], f32), [-2, -2], "circular") ~= full([1, 1, 0], 0, f32)
# run: mirrored(iota([1, 1, 4], f32), [-5, 3], "circular") raises "Padding -5 and 3 of dimension 2 leaves nothing to wrap around"
# run: mirrored(full([1, 1, 4], True, bool), [1, 1], "replicate") raises "\"replication_pad1d\" not implemented for 'Bool'"
# run: mirrored(full([1, 4, 4], True, bool), [1, 1, 1, 1], "reflect") raises "\"reflection_pad2d\" not implemented for 'Bool'"
# run: infinite(full([2], 1, c64), True) raises "isneginf does not support complex inputs."
# run: infinite(full([2], 1, c64), False) raises "isposinf does not support complex inputs."
# run: heads(full([1, 2, 9], 1, f32), full([9], 1, f32), 2) raises "num_heads must be positive and divide embed_dim"
# run: heads(full([1, 2, 10], 1, f32), full([10], 1, f32), 3) raises "qkv and bias must have 3 * embed_dim features"
# run: whole(tensor(nan, f32)) raises "value cannot be converted to type int64_t without overflow"
# run: whole(tensor(-inf, f64)) raises "value cannot be converted to type int64_t without overflow"
# run: whole(tensor(1e30, f64)) raises "value cannot be converted to type int64_t without overflow"
# run: whole(tensor(-2.5, f16)) == -2
# run: layer(123.456, 7, None) ~= tensor([0.0, 0.0], f32)
# run: layer(10000.3, 33, None) ~= tensor([0.0, 0.0], f32)
# run: layer(-7777.77, 1000, None) ~= tensor([0.0, 0.0], f32)
# run: layer(0.1, 100, full([100], 3, f32)) ~= tensor([0.0, 0.0], f32)
# run: layer_stats(123.456, 100) ~= (tensor([0.0, 0.0], f32), tensor([[123.456]], f32), tensor([[316.22778]], f32))
# run: layer_stats(-7777.77, 33) ~= (tensor([0.0, 0.0], f32), tensor([[-7777.77]], f32), tensor([[316.22778]], f32))
# run: groups(123.456, 33) ~= tensor([0.0, 0.0], f32)
# run: groups(10000.3, 1000) ~= tensor([0.0, 0.0], f32)
# run: chained(tensor([[inf, nan]], f32), full([2, 0], 0, f32), full([0, 3], 0, f32)) ~= (tensor([[0.0, 0.0, 0.0]], f32), tensor([[0.0, 0.0, 0.0]], f32))
# run: chained(rand([3, 2], f64, 1), rand([2, 4], f64, 2), rand([4, 1], f64, 3)) ~= (tensor([[1.6918601989746094], [-1.2660713195800781], [7.886615753173828]], f64), tensor([[1.6918601989746094], [-1.2660713195800781], [7.886615753173828]], f64))
# run: chained(rand([1, 4], f64, 1), rand([4, 2], f64, 2), rand([2, 3], f64, 3)) ~= (tensor([[6.698856353759766, 4.799674987792969, -4.200927734375]], f64), tensor([[6.698856353759766, 4.799674987792969, -4.200927734375]], f64))
# run: uncounted(full([2, 2], 1, f32), full([2, 2], nan, f32), full([2, 2], 1, f32)) ~= (tensor([[1.0, 1.0], [1.0, 1.0]], f32), tensor([1.0, 1.0], f32), tensor([[2.0, 2.0], [2.0, 2.0]], f32))
# run: near(full([0], 0, f32), 0.5, nan) raises "atol must be greater than or equal to zero, but got nan"
# run: near(tensor([1.0], f32), nan, 0.5) raises "rtol must be greater than or equal to zero, but got nan"
# run: near(tensor([1.0], f32), inf, 0.5) == (tensor([True], bool), True)
# run: limited(tensor([-5, 5], i64), -0.5, nan) raises "without overflow"
# run: limited(tensor([-5, 5], i8), -1.0, 300.0) raises "without overflow"
# run: limited(tensor([-5, 5], i8), -1.0, 3.5) == tensor([-1, 3], i8)
# run: surrounded(tensor([1, 2], u8), [1, 0], 300.0) raises "without overflow"
# run: surrounded(tensor([1, 2], i64), [1, 0], nan) raises "without overflow"
# run: surrounded(tensor([1, 2], i64), [-1, 0], nan) == tensor([2], i64)
# run: surrounded(tensor([1.0], f16), [1, 0], 1e9) raises "without overflow"
# run: layer_stats(-inf, 2) ~= (tensor([nan, nan], f32), tensor([[nan]], f32), tensor([[nan]], f32))
# run: pooled_beyond_half() raises "pad should be smaller than or equal to half of kernel size, but got padW = 1, padH = 2, kW = 2, kH = 2"
