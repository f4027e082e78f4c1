# test run
# Attention that PyTorch computes with its fused implementation has the strides of the query: four dimensions of the same
# sizes, contiguous elements, and a mask for the batch or for each head. Otherwise the result is row-major.
def strides(x: Tensor, order: List[int], mask: Optional[Tensor], dropout: float) -> List[int]:
    q = torch.sin(x).permute(order)
    return torch.ops.aten.scaled_dot_product_attention(q, q, q, mask, dropout).stride()

def of_query(q: Tensor, k: Tensor) -> List[int]:
    return torch.ops.aten.scaled_dot_product_attention(q.transpose(1, 2), k, k).stride()

def flash(x: Tensor, order: List[int]):
    out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x.permute(order), x.permute(order), x.permute(order))
    return out.stride(), sums.stride()

# run: strides(iota([2, 3, 4, 5], f64), [0, 1, 2, 3], None, 0.0) == [60, 20, 5, 1]
# run: strides(iota([2, 4, 3, 5], f64), [0, 2, 1, 3], None, 0.0) == [60, 5, 15, 1]
# run: strides(iota([3, 2, 4, 5], f32), [1, 0, 2, 3], None, 0.0) == [20, 40, 5, 1]
# run: strides(iota([2, 3, 5, 4], f64), [0, 1, 3, 2], None, 0.0) == [60, 20, 5, 1]
# run: strides(iota([2, 4, 3, 5], f64), [0, 2, 1, 3], full([4, 4], True), 0.0) == [60, 5, 15, 1]
# run: strides(iota([2, 4, 3, 5], f64), [0, 2, 1, 3], full([2, 1, 4, 4], 0.5, f64), 0.0) == [60, 5, 15, 1]
# run: strides(iota([2, 4, 3, 5], f64), [0, 2, 1, 3], full([3, 4, 4], 0.5, f64), 0.0) == [60, 20, 5, 1]
# run: strides(iota([4, 3, 5], f64), [1, 0, 2], None, 0.0) == [20, 5, 1]
# run: strides(iota([2, 2, 4, 3, 5], f64), [0, 1, 3, 2, 4], None, 0.0) == [120, 60, 20, 5, 1]
# run: of_query(iota([2, 4, 3, 5], f32), iota([2, 3, 6, 5], f32)) == [60, 5, 15, 1]
# run: of_query(iota([2, 4, 3, 5], f32), iota([1, 3, 6, 5], f32)) == [60, 20, 5, 1]
# run: flash(iota([2, 4, 3, 5], f64), [0, 2, 1, 3]) == ([60, 5, 15, 1], [12, 1, 3])
# run: flash(iota([2, 3, 5, 4], f64), [0, 1, 3, 2]) == ([60, 20, 1, 4], [12, 1, 3])
