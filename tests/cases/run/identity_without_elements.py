# test run
# A matrix without elements may have any number of rows and columns up to a limit, which bounds loops over them.
def wide(n: int):
    return torch.eye(0, n).shape

def tall(n: int):
    return torch.eye(n, 0).shape

def deviation(n: int):
    return torch.std(torch.eye(n, 0))

def deviations(n: int):
    return torch.var(torch.zeros([n, 0, 3]), dim=[1, 2]).shape

# run: wide(200000000) == [0, 200000000]
# run: tall(200000000) == [200000000, 0]
# run: wide(9223372036854775807) raises "a tensor without elements of sizes [0, 9223372036854775807]"
# run: tall(9223372036854775807) raises "a tensor without elements of sizes [9223372036854775807, 0]"
# run: deviation(200000000) == tensor(nan, f32)
# run: deviations(2000) == [2000]
