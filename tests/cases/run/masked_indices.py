# test run
# Masked positions are neither read nor written, whatever their index.
def put(x: Tensor, mask: Tensor, at: Tensor, values: Tensor):
    places: List[Optional[Tensor]] = [at]
    return torch.ops.aten._unsafe_masked_index_put_accumulate(x, mask, places, values)

def get(x: Tensor, mask: Tensor, at: Tensor, fill: float):
    places: List[Optional[Tensor]] = [at]
    return torch.ops.aten._unsafe_masked_index(x, mask, places, fill)

# run: put(tensor([1.0, nan, inf], f32), tensor([True, False, True], bool), tensor([0, 1, 0], i64), tensor([1.0, nan, 2.0], f32)) ~= tensor([4.0, nan, inf], f32)
# run: put(tensor([1.0, nan, inf], f32), tensor([True, False, False], bool), tensor([0, 7, -9], i64), tensor([1.0, inf, -inf], f32)) ~= tensor([2.0, nan, inf], f32)
# run: put(tensor([1.0, 2.0, 3.0], f32), tensor([False, False, False], bool), tensor([0, 1, 2], i64), tensor([nan, inf, -inf], f32)) ~= tensor([1.0, 2.0, 3.0], f32)
# run: put(tensor([1.0, nan, inf], f32), tensor([True, True, True], bool), tensor([0, 1, 2], i64), tensor([nan, 1.0, -inf], f32)) ~= tensor([nan, nan, nan], f32)
# run: put(tensor([1, 2, 3], i64), tensor([True, False, True], bool), tensor([0, 1, 0], i64), tensor([1, 2, 3], i64)) == tensor([5, 2, 3], i64)
# run: get(tensor([1.0, nan, inf], f32), tensor([True, False, True], bool), tensor([0, 1, 1], i64), 5.0) ~= tensor([1.0, 5.0, nan], f32)
# run: get(tensor([1.0, nan, inf], f32), tensor([False, False, True], bool), tensor([9, -8, 2], i64), nan) ~= tensor([nan, nan, inf], f32)
