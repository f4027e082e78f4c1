# test run
# A mask without dimensions: as the only index it selects all or nothing in an assignment of one value, and fails otherwise; beside
# other indices it adds none.
def assigned(x: Tensor, m: Tensor, v: Tensor):
    x = x.clone()
    x[m] = v
    return x


def read(x: Tensor, m: Tensor):
    return x[m]


def beside(x: Tensor, m: Tensor, i: Tensor):
    return x[m, i]


# run: assigned(tensor([1.0, 2.0]), tensor(True), tensor(5.0)) == tensor([5.0, 5.0])
# run: assigned(tensor([1.0, 2.0]), tensor(True), tensor([[5.0]])) == tensor([5.0, 5.0])
# run: assigned(tensor([1.0, 2.0]), tensor(False), tensor(5.0)) == tensor([1.0, 2.0])
# run: assigned(tensor([1.0, 2.0]), tensor(True), tensor([5.0, 6.0])) raises "an index needs a mask with at least one dimension"
# run: assigned(tensor(1.0), tensor(True), tensor(5.0)) raises "too many indices for tensor of dimension 0"
# run: read(tensor([1.0, 2.0]), tensor(False)) raises "an index needs a mask with at least one dimension"
# run: read(full([0, 3], 0, f32), tensor(True)) == full([0, 3], 0, f32)
# run: beside(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor(True), tensor([1])) == tensor([[3.0, 4.0]])
