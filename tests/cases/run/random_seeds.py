# test run
# The numbers of a seed.
def uniform(seed: int):
    torch.manual_seed(seed)
    return torch.rand([4]), torch.rand([2], dtype=torch.float64), torch.randint(0, 100, [4]), torch.randperm(6)

def normal(seed: int):
    torch.manual_seed(seed)
    return torch.randn([3]), torch.randn([17]), torch.normal(torch.zeros([2]), torch.ones([2]))

def choices(seed: int):
    torch.manual_seed(seed)
    return torch.bernoulli(torch.full([5], 0.3)), torch.multinomial(torch.tensor([0.1, 0.5, 0.9, 0.4]), 6, True), torch.dropout(torch.ones([6]), 0.5, True)

# run: uniform(5) == (tensor([0.8302519, 0.12611091, 0.9074697, 0.81992704], f32), tensor([0.36082761942715424, 0.31513260814905053], f64), tensor([88, 4, 79, 50], i64), tensor([5, 3, 4, 1, 0, 2], i64))
# run: normal(7) ~= (tensor([-0.1467951, 0.7861413, 0.94682163], f32), tensor([-0.17643793, -1.2169294, -0.081021585, 1.3614851, -1.3032167, 0.08747838, -1.3849614, 0.5035639, -0.08352823, -0.5640067, -2.0564625, -0.35672253, 1.0955805, 0.48235416, 1.3989184, 1.4058529, -1.4012508], f32), tensor([-1.114344, 1.0841875], f32))
# run: choices(11) == (tensor([1.0, 0.0, 0.0, 1.0, 0.0], f32), tensor([2, 0, 2, 1, 2, 0], i64), tensor([2.0, 0.0, 2.0, 0.0, 2.0, 0.0], f32))
