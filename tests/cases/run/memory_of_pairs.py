# test run
# Results that grow with the product of sizes are within the memory limit of a call, also while they are computed.
def distances(n: int):
    return torch.cdist(torch.zeros([n, 0]), torch.zeros([n, 0]))

def pairs(n: int):
    return torch.pdist(torch.zeros([n, 0]))

def sampled(n: int):
    return torch.grid_sampler_2d(torch.zeros([1, n, 1, 1]), torch.zeros([1, n, 1, 2]), 0, 0, False)

def grid(n: int):
    return torch.affine_grid_generator(torch.zeros([1, 2, 3]), [1, 1, n, n], False)

def chosen(n: int):
    return torch.combinations(torch.arange(n), 5)

# run: distances(2000000) raises "out of memory"
# run: pairs(4000000) raises "out of memory"
# run: sampled(2000000) raises "out of memory"
# run: grid(2000000) raises "out of memory"
# run: chosen(2000000) raises "out of memory"
# run: distances(2) == tensor([[0.0, 0.0], [0.0, 0.0]], f32)
# run: chosen(5) == tensor([[0, 1, 2, 3, 4]])

def factors(n: int):
    return torch.linalg.svd(torch.zeros([n, 0]))

def order(n: int):
    return torch.linalg.lu(torch.zeros([n, 0]))

def complete(n: int):
    return torch.linalg.qr(torch.zeros([n, 0]), mode="complete")

# run: factors(2000000) raises "out of memory"
# run: order(2000000) raises "out of memory"
# run: complete(2000000) raises "out of memory"
