# test run
# An empty list reduces no dimension; each element becomes its truth, in uint8 for uint8.
def some(x: Tensor):
    return torch.any(x, dim=annotate(List[int], []))

def every(x: Tensor):
    return torch.all(x, dim=annotate(List[int], []))

# run: some(tensor([5, 0], u8)) == tensor([1, 0], u8)
# run: every(tensor([5, 0], u8)) == tensor([1, 0], u8)
# run: every(tensor([5, 0], i64)) == tensor([True, False], bool)
