# test run
# `max_norm` has no effect in a compiled `F.embedding`, because PyTorch drops its operator; a call by name works.
def plain(i: Tensor, w: Tensor):
    return torch.nn.functional.embedding(i, w, max_norm=1.0), w

def bags(i: Tensor, w: Tensor):
    return torch.nn.functional.embedding_bag(i, w, torch.tensor([0]), max_norm=1.0), w

def shortened(i: Tensor, w: Tensor):
    torch.embedding_renorm_(w, i, 1.0, 2.0)
    return torch.nn.functional.embedding(i, w), w

# run: plain(tensor([0, 1, 1], i64), tensor([[3.0, 4.0], [6.0, 8.0], [0.5, 0.25]], f32)) ~= (tensor([[3.0, 4.0], [6.0, 8.0], [6.0, 8.0]], f32), tensor([[3.0, 4.0], [6.0, 8.0], [0.5, 0.25]], f32))
# run: bags(tensor([0, 1, 1], i64), tensor([[3.0, 4.0], [6.0, 8.0], [0.5, 0.25]], f32)) ~= (tensor([[5.0, 6.6666665]], f32), tensor([[3.0, 4.0], [6.0, 8.0], [0.5, 0.25]], f32))
# run: shortened(tensor([0, 1, 1], i64), tensor([[3.0, 4.0], [6.0, 8.0], [0.5, 0.25]], f32)) ~= (tensor([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8]], f32), tensor([[0.6, 0.8], [0.6, 0.8], [0.5, 0.25]], f32))
