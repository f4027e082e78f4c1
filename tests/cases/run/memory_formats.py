# test run
# Strides of results for tensors with innermost channels or permuted dimensions, as in PyTorch.


def image(x: Tensor):
    y = x.contiguous(memory_format=torch.channels_last)
    pooled = torch.max_pool2d(y, [2, 2])
    padded = torch.nn.functional.pad(y, [1, 1])
    wrapped = torch.nn.functional.pad(y, [1, 1, 1, 1], "circular")
    larger = torch.nn.functional.interpolate(y, scale_factor=2.0)
    grouped = torch.nn.functional.group_norm(y, 1)
    normed = torch.batch_norm(y, None, None, None, None, True, 0.1, 1e-5, False)
    joined = torch.cat([y, y], 1)
    return [pooled.stride(), padded.stride(), wrapped.stride(), larger.stride(), grouped.stride(),
            normed.stride(), joined.stride(), torch.roll(y, 1, 1).stride(), torch.pixel_shuffle(y, 1).stride()]


def turned(x: Tensor):
    y = x.transpose(0, 3)
    return [torch.flip(y, [1]).stride(), torch.fliplr(y).stride(), torch.argsort(y, 1).stride(), torch.roll(y, 1, 1).stride()]


# run: image(rand([2, 2, 4, 6], f32, 1)) == [[12, 1, 6, 2], [64, 1, 16, 2], [96, 48, 8, 1], [192, 1, 24, 2], [48, 1, 12, 2], [48, 1, 12, 2], [96, 1, 24, 4], [48, 1, 12, 2], [48, 1, 12, 2]]
# run: turned(rand([2, 2, 4, 6], f32, 1)) == [[1, 24, 6, 48], [1, 24, 6, 48], [1, 24, 6, 48], [16, 8, 2, 1]]
