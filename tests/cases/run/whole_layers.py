# test run
# Attention with its projections, and complete encoder layers.
def attend(x, w, b, p, c, weights: bool, average: bool):
    return torch._native_multi_head_attention(x, x, x, 4, 2, w, b, p, c, None, weights, average)

def result(x, w, b, p, c):
    return torch._native_multi_head_attention(x, x, x, 4, 2, w, b, p, c, None, False)[0]

def masked(x, w, b, p, c, mask, kind: int):
    return torch._native_multi_head_attention(x, x, x, 4, 2, w, b, p, c, mask, False, True, kind)[0]

def layer(x, w, b, p, c, n, f, g, e, gelu: bool, first: bool):
    return torch._transformer_encoder_layer_fwd(x, 4, 2, w, b, p, c, gelu, first, 1e-5, n, c, c, n, f, g, e, n)

# run: attend(rand([1, 3, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), True, True) ~= (tensor([[[0.528883, -1.5174966, 1.2079167, -6.5272346], [1.7618268, -1.4013469, 0.6015451, -8.145187], [2.078673, 4.106288, -2.6091018, 0.5833827]]], f32), tensor([[[0.004536184, 0.9830043, 0.012459493], [0.44780943, 0.5520524, 0.00013821245], [0.0000739319, 0.45936388, 0.5405622]]], f32))
# run: attend(rand([1, 2, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), True, False) ~= (tensor([[[0.48578286, -1.6782744, 1.349226, -6.6570787], [1.7617018, -1.4030533, 0.6029055, -8.1470375]]], f32), tensor([[[[0.0005573661, 0.99944264], [5.460495e-9, 1.0]], [[0.0087326, 0.9912674], [0.8958665, 0.104133494]]]], f32))
# run: result(rand([1, 2, 4], f64, 1), rand([12, 4], f64, 2), rand([12], f64, 3), rand([4, 4], f64, 4), rand([4], f64, 5)) ~= tensor([[[0.4857827484091466, -1.6782741983140959, 1.3492257795060136, -6.6570783645995615], [1.7617017386308707, -1.4030531282346281, 0.6029055307463969, -8.147037362415272]]], f64)
# run: masked(rand([2, 3, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), tensor([[False, False, True], [False, True, True]]), 1) ~= tensor([[[0.48578286, -1.6782744, 1.349226, -6.6570787], [1.7617018, -1.4030533, 0.6029055, -8.1470375], [3.2815542, 5.961669, -4.06721, 3.8743205]], [[8.271061, 8.525478, -9.417648, 6.7648735], [8.271061, 8.525478, -9.417648, 6.7648735], [8.271061, 8.525478, -9.417648, 6.7648735]]], f32)
# run: masked(rand([1, 2, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), tensor([[False, True], [False, False]]), 0) ~= tensor([[[4.7215614, 6.2767105, -4.911888, 2.2014236], [1.7617018, -1.4030533, 0.6029055, -8.1470375]]], f32)
# run: layer(rand([1, 2, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), rand([4], f32, 6), rand([3, 4], f32, 7), rand([3], f32, 8), rand([4, 3], f32, 9), True, False) ~= tensor([[[-0.6134117, 2.5627143, 1.119351, 1.3625299], [-0.46708158, 3.1449156, 1.4306979, 1.3657508]]], f32)
# run: layer(rand([1, 2, 4], f32, 1), rand([12, 4], f32, 2), rand([12], f32, 3), rand([4, 4], f32, 4), rand([4], f32, 5), rand([4], f32, 6), rand([3, 4], f32, 7), rand([3], f32, 8), rand([4, 3], f32, 9), False, True) ~= tensor([[[-2.410337, 9.520823, 0.6896014, -8.070945], [1.2109871, 2.622537, 2.3916507, -17.382727]]], f32)
