# test run
# Inferred facts about results hold, so optimized programs agree with the reference: an empty list of dimensions, another
# joined dtype, numbers without a dimension to keep, an empty integral dimension. A tensor without dimensions is not transposed.
def count(x: Tensor) -> int:
    return torch.count_nonzero(x, torch.jit.annotate(List[int], [])).dim()

def diff(x: Tensor) -> Tuple[int, int]:
    return torch.diff(x < 1.0, 1, 1, None, x).dtype, torch.diff(x < 1.0, 0, 1, None, x).dtype

def distance(x: Tensor) -> int:
    return torch.pairwise_distance(torch.sum(x), torch.sum(x), 2.0, 1e-6, True).dim()

def area(x: Tensor) -> int:
    return torch.trapz(x).dtype

def power(x: Tensor, n: int) -> bool:
    return torch.matrix_power(x, n).is_contiguous()

def rank(x: Tensor, tol: Tensor) -> int:
    return torch.linalg.matrix_rank(x, tol).dim()

def stretched(x: Tensor, y: Tensor) -> List[int]:
    return (x + y.permute([3, 0, 1, 2]).contiguous().permute([1, 2, 3, 0])).contiguous().stride()

def rot(x: Tensor) -> Tensor:
    return torch.rot90(torch.sum(x), 1, [-1, -1])

def pad(x: Tensor, by: List[int]) -> Tensor:
    return torch.nn.functional.pad(x, by, "circular")

# run: count(full([3, 3], 1.0, f32)) == 0
# run: diff(full([3, 3], 1.0, f32)) == (6, 11)
# run: distance(full([3, 3], 1.0, f32)) == 0
# run: area(full([2, 0], 0, i64)) == 4
# run: area(full([2, 3], 0, i64)) == 6
# run: power(tensor([[2.0, 0.0], [0.0, 4.0]], f32), 2) == True
# run: rank(full([0, 3], 1.0, f32), full([2], 1.0, f32)) == 0
# run: stretched(full([3, 1], 1.0, f32), full([1, 1, 1, 3], 1.0, f32)) == [9, 9, 3, 1]
# run: rot(full([3, 3], 1.0, f32)) raises "expected total dims >= 2"
# run: pad(iota([3, 3], f32), [-1, 2]) == tensor([[1.0, 2.0, 1.0, 2.0], [4.0, 5.0, 4.0, 5.0], [7.0, 8.0, 7.0, 8.0]], f32)
# run: pad(full([3, 3], 1.0, f32), [-3, 1]) raises "leaves nothing to wrap around"
