# test run
# An identity matrix without elements may have any number of rows and columns.
def wide(n: int):
    return torch.eye(0, n).shape

def tall(n: int):
    return torch.eye(n, 0).shape

# run: wide(9223372036854775807) == [0, 9223372036854775807]
# run: tall(9223372036854775807) == [9223372036854775807, 0]
