# test run
# Embeddings and whole recurrent networks.

def rows(table, at):
    out, bags, sizes, last = torch.embedding_bag(table, at, torch.tensor([0, 2]), False, 1)
    return torch.embedding(table, at), out

def gru(x, h, a: List[Tensor]):
    out, last = torch.gru(x, h, a, False, 1, 0., False, False, True)
    return out, last

def lstm(x, h, c, a: List[Tensor]):
    out, h2, c2 = torch.lstm(x, [h, c], a, False, 1, 0., False, True, False)
    return out, h2, c2

def shuffles(x):
    return torch.pixel_shuffle(x, 2), torch.channel_shuffle(x, 2)

# run: rows(rand([4, 2], f32, 1), tensor([3, 0, 1], i64)) ~= (tensor([[-0.328125, -1.625], [-1.109375, -0.328125], [0.96875, 0.328125]], f32), tensor([[-0.71875, -0.9765625], [0.96875, 0.328125]], f32))
# run: rows(rand([4, 2], f32, 1), tensor([4, 0, 1], i64)) raises "index out of range in self"
# run: gru(rand([1, 2, 2], f32, 1), rand([1, 1, 2], f32, 2), [rand([6, 2], f32, 3), rand([6, 2], f32, 4)]) ~= (tensor([[[0.37929994, 0.6070845], [0.15987086, 0.5052977]]], f32), tensor([[[0.15987086, 0.5052977]]], f32))
# run: lstm(rand([2, 1, 2], f32, 1), rand([2, 1, 1], f32, 2), rand([2, 1, 1], f32, 3), [rand([4, 2], f32, 4), rand([4, 1], f32, 5), rand([4, 2], f32, 6), rand([4, 1], f32, 7)]) ~= (tensor([[[0.3923928, -0.102095105]], [[0.12037299, 0.09405208]]], f32), tensor([[[0.12037299]], [[-0.102095105]]], f32), tensor([[[0.42057696]], [[-0.15132847]]], f32))
# run: shuffles(rand([1, 4, 1, 2], f32, 1)) == (tensor([[[[-1.109375, 0.96875, -0.328125, 0.328125], [-0.21875, -0.328125, 1.421875, -1.625]]]], f32), tensor([[[[-1.109375, -0.328125]], [[-0.21875, 1.421875]], [[0.96875, 0.328125]], [[-0.328125, -1.625]]]], f32))
