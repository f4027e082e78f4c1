# Functions for the formulas of `resize.grads`: pooling and resampling.

def separable(grad: Tensor, weights: List[Tensor]) -> Tensor:
    # Each of the last dimensions was mapped by its own matrix (outputs by inputs).
    n = len(weights)
    for i in range(n):
        d = grad.dim() - n + i
        grad = torch.matmul(grad.movedim(d, -1), weights[i].to(grad.dtype)).movedim(-1, d)
    return grad

def avg_weights(size: int, kernel: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, i: int) -> Tensor:
    k = kernel[i] if len(kernel) > 1 else kernel[0]
    s = k
    if len(stride) > 0:
        s = stride[i] if len(stride) > 1 else stride[0]
    p = padding[i] if len(padding) > 1 else padding[0]
    units = torch.eye(size, dtype=torch.float64).unsqueeze(0)
    return torch.avg_pool1d(units, [k], [s], [p], ceil_mode, count_include_pad).squeeze(0).t()

def avg_pool_gradient(grad: Tensor, self: Tensor, kernel: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, divisor: Optional[int], n: int) -> Tensor:
    weights: List[Tensor] = []
    volume = 1
    for i in range(n):
        size = self.size(self.dim() - n + i)
        k = kernel[i] if len(kernel) > 1 else kernel[0]
        volume = volume * k
        w = avg_weights(size, kernel, stride, padding, ceil_mode, count_include_pad, i)
        # With an explicit divisor, all elements have equal weights.
        weights.append(w if divisor is None else (w != 0).to(torch.float64))
    back = separable(grad, weights)
    return back if divisor is None else back / divisor

def adaptive_avg_gradient(grad: Tensor, self: Tensor, n: int) -> Tensor:
    weights: List[Tensor] = []
    for i in range(n):
        d = self.dim() - n + i
        units = torch.eye(self.size(d), dtype=torch.float64).unsqueeze(0)
        weights.append(torch.adaptive_avg_pool1d(units, [grad.size(d)]).squeeze(0).t())
    return separable(grad, weights)

def adaptive_avg_pool2d_body(self: Tensor, output_size: List[int]) -> Tensor:
    if output_size == [1, 1]:
        return self.mean([-1, -2], True)
    return torch.ops.aten._adaptive_avg_pool2d(self, output_size)

def adaptive_avg_pool3d_body(self: Tensor, output_size: List[int]) -> Tensor:
    if output_size == [1, 1, 1]:
        return self.mean([-1, -2, -3], True)
    return torch.ops.aten._adaptive_avg_pool3d(self, output_size)

def max_pool1d_body(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

def max_pool2d_body(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch._C._nn.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

def max_pool3d_body(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch._C._nn.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

def planes_gradient(grad: Tensor, self: Tensor, indices: Tensor, n: int) -> Tensor:
    # Pooling saved the index of each element within its plane.
    if grad.numel() == 0:
        return torch.zeros_like(self)
    flat = torch.zeros_like(self).flatten(-n)
    return flat.scatter_add(-1, indices.flatten(-n), grad.flatten(-n)).reshape(self.size())

def factor(scales: Optional[List[float]], i: int) -> Optional[float]:
    if scales is None:
        return None
    return scales[i]

def units_along(input: Tensor, d: int) -> Tensor:
    # The unit vectors of a dimension, as one-column images.
    return torch.eye(input.size(d), dtype=torch.float64).unsqueeze(0).unsqueeze(-1)

def linear_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scale: Optional[float]) -> Tensor:
    found = torch._C._nn.upsample_linear1d(units_along(input, d).squeeze(-1), [grad.size(d)], align_corners, scale)
    return found.squeeze(0).t()

def cubic_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scale: Optional[float]) -> Tensor:
    found = torch._C._nn.upsample_bicubic2d(units_along(input, d), [grad.size(d), 1], align_corners, scale, None)
    return found.squeeze(-1).squeeze(0).t()

def smooth_linear_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scale: Optional[float]) -> Tensor:
    found = torch._C._nn._upsample_bilinear2d_aa(units_along(input, d), [grad.size(d), 1], align_corners, scale, None)
    return found.squeeze(-1).squeeze(0).t()

def smooth_cubic_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scale: Optional[float]) -> Tensor:
    found = torch._C._nn._upsample_bicubic2d_aa(units_along(input, d), [grad.size(d), 1], align_corners, scale, None)
    return found.squeeze(-1).squeeze(0).t()

def grid_place(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    # Maps -1 .. 1 to element positions.
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2

def mirrored(at: Tensor, low: float, high: float) -> Tensor:
    # Reflects at two positions until the result is between them.
    if low == high:
        return torch.zeros_like(at)
    span = high - low
    away = (at - low).abs()
    flips = (away / span).floor().detach()
    rest = away - flips * span
    return torch.where(flips % 2 == 0, rest + low, high - rest)

def grid_inside(at: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    # Padding: 0 zeros, 1 the border, 2 reflection.
    if padding_mode == 2:
        at = mirrored(at, 0.0, float(size - 1)) if align_corners else mirrored(at, -0.5, size - 0.5)
    if padding_mode != 0:
        # At the border the derivative is zero.
        stuck = (at <= 0).logical_or(at >= size - 1)
        at = torch.where(stuck, at.clamp(0.0, float(size - 1)).detach(), at)
    return at

def grid_read(input: Tensor, places: List[Tensor]) -> Tensor:
    # The elements of all channels at integral positions; zeros outside.
    flat = input.flatten(2)
    index = torch.zeros_like(places[0]).to(torch.int64)
    outside = torch.zeros_like(index) != 0
    for d in range(len(places)):
        size = input.size(d + 2)
        at = places[d].to(torch.int64)
        outside = outside.logical_or(at < 0).logical_or(at >= size)
        index = index * size + at.clamp(0, max(size - 1, 0))
    rows = index.flatten(1).unsqueeze(1)
    found = flat.gather(2, rows.expand([input.size(0), input.size(1), rows.size(2)]))
    sizes = [input.size(0), input.size(1)]
    for d in range(1, index.dim()):
        sizes.append(index.size(d))
    return found.reshape(sizes).masked_fill(outside.unsqueeze(1), 0.0)

def grid_body(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    # Interpolation: 0 linear, 1 nearest, 2 cubic. The grid has the last dimension first.
    n = input.dim() - 2
    if interpolation_mode == 2:
        return cubic_grid_body(input, grid, padding_mode, align_corners)
    places: List[Tensor] = []
    for d in range(n):
        at = grid_place(grid.select(-1, n - 1 - d), input.size(d + 2), align_corners)
        places.append(grid_inside(at, input.size(d + 2), padding_mode, align_corners))
    if interpolation_mode == 1:
        nearest: List[Tensor] = []
        for at in places:
            nearest.append(at.detach().round())
        return grid_read(input, nearest) + grid.sum([-1]).unsqueeze(1) * 0.0
    total = torch.zeros([1], dtype=input.dtype)
    for corner in range(1 << n):
        weight = torch.ones([1], dtype=input.dtype)
        at_corner: List[Tensor] = []
        rest = corner
        for d in range(n):
            low = places[d].detach().floor()
            part = places[d] - low
            if rest % 2 == 1:
                at_corner.append(low + 1)
                weight = weight * part
            else:
                at_corner.append(low)
                weight = weight * (1 - part)
            rest = rest // 2
        total = total + grid_read(input, at_corner) * weight.unsqueeze(1)
    return total

def cubic_shares(t: Tensor) -> List[Tensor]:
    # Weights of the elements at -1, 0, 1 and 2, with Keys' parameter -0.75.
    a = -0.75
    far = t + 1
    near = 1 - t
    away = 2 - t
    return [((a * far - 5 * a) * far + 8 * a) * far - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1, ((a + 2) * near - (a + 3)) * near * near + 1, ((a * away - 5 * a) * away + 8 * a) * away - 4 * a]

def cubic_grid_body(input: Tensor, grid: Tensor, padding_mode: int, align_corners: bool) -> Tensor:
    y = grid_place(grid.select(-1, 1), input.size(2), align_corners)
    x = grid_place(grid.select(-1, 0), input.size(3), align_corners)
    top = y.detach().floor()
    left = x.detach().floor()
    across_y = cubic_shares(y - top)
    across_x = cubic_shares(x - left)
    total = torch.zeros([1], dtype=input.dtype)
    for i in range(4):
        row = grid_inside(top + (i - 1), input.size(2), padding_mode, align_corners)
        for j in range(4):
            column = grid_inside(left + (j - 1), input.size(3), padding_mode, align_corners)
            total = total + grid_read(input, [row, column]) * (across_y[i] * across_x[j]).unsqueeze(1)
    return total

def affine_body(theta: Tensor, size: List[int], align_corners: bool) -> Tensor:
    # The grid of the identity map in homogeneous coordinates, times each matrix.
    n = len(size) - 2
    same = torch.eye(n, n + 1, dtype=theta.dtype).expand([theta.size(0), n, n + 1])
    grid = torch.affine_grid_generator(same, size, align_corners)
    flat = grid.reshape([theta.size(0), -1, n])
    rows = torch.cat([flat, torch.ones([flat.size(0), flat.size(1), 1], dtype=theta.dtype)], -1)
    return torch.matmul(rows, theta.transpose(1, 2)).reshape(grid.size())
