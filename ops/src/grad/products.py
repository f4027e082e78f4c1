# Functions for the formulas of `products.grads`: products.

def matmul_left(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 1 and other.dim() == 1:
        return grad * other.conj()
    if other.dim() == 1:
        return grad.unsqueeze(-1) * other.conj()
    if self.dim() == 1:
        back = torch.matmul(grad.unsqueeze(-2), other.transpose(-1, -2).conj()).squeeze(-2)
        return back.sum_to_size([self.size(0)])
    return torch.matmul(grad, other.transpose(-1, -2).conj())

def matmul_right(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 1 and other.dim() == 1:
        return grad * self.conj()
    if self.dim() == 1:
        return self.conj().unsqueeze(-1) * grad.unsqueeze(-2)
    if other.dim() == 1:
        back = torch.matmul(self.transpose(-1, -2).conj(), grad.unsqueeze(-1)).squeeze(-1)
        return back.sum_to_size([other.size(0)])
    return torch.matmul(self.transpose(-1, -2).conj(), grad)

def rows_of(x: Tensor) -> Tensor:
    # A matrix of the rows along the last dimension, also of rows without elements, whose number no size `-1` determines.
    return x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)

def linear_weight(grad: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    rows = rows_of(input)
    if weight.dim() == 1:
        return torch.mv(rows.t().conj(), grad.reshape([-1]))
    return torch.mm(rows_of(grad).t(), rows.conj())

def einsum_gradient(grad: Tensor, equation: str, tensors: List[Tensor]) -> List[Tensor]:
    text = equation
    left = text
    right = ""
    if "->" in text:
        left = text.split("->")[0]
        right = text.split("->")[1]
    else:
        for c in sorted([x for x in left.replace(",", "")]):
            if left.count(c) == 1:
                right = right + c
    names = left.split(",")
    parts: List[Tensor] = []
    for i in range(len(tensors)):
        others: List[Tensor] = [grad]
        terms = [right]
        seen = right
        for j in range(len(tensors)):
            if j != i:
                others.append(tensors[j].conj())
                terms.append(names[j])
                seen = seen + names[j]
        # A letter that occurs only in this operand was summed: its gradient is broadcast by a row of ones. A repeated
        # letter is a diagonal.
        own = ""
        for c in names[i]:
            if c not in own:
                own = own + c
        for k in range(len(names[i])):
            c = names[i][k]
            if c not in seen:
                others.append(torch.ones([tensors[i].size(k)], dtype=grad.dtype))
                terms.append(c)
                seen = seen + c
        back = torch.einsum(",".join(terms) + "->" + own, others)
        if own == names[i]:
            parts.append(back.expand(tensors[i].size()))
        else:
            at = torch.einsum(names[i] + "->" + own, [positions(tensors[i])])
            parts.append(moved(back, at, tensors[i]))
    return parts

def multi_dot_gradient(grad: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    n = len(tensors)
    mats: List[Tensor] = []
    for t in tensors:
        mats.append(t)
    if mats[0].dim() == 1:
        mats[0] = mats[0].unsqueeze(0)
    if mats[n - 1].dim() == 1:
        mats[n - 1] = mats[n - 1].unsqueeze(-1)
    rows = mats[0].size(0)
    cols = mats[n - 1].size(1)
    g = grad.reshape([rows, cols])
    after: List[Tensor] = [torch.eye(cols, dtype=grad.dtype)]
    for i in range(n - 1):
        after.append(torch.mm(mats[n - 1 - i], after[i]))
    parts: List[Tensor] = []
    before = torch.eye(rows, dtype=grad.dtype)
    for i in range(n):
        back = torch.mm(torch.mm(before.t().conj(), g), after[n - 1 - i].t().conj())
        parts.append(back.reshape(tensors[i].size()))
        before = torch.mm(before, mats[i])
    return parts

def kron_blocks(grad: Tensor, a: Tensor, b: Tensor) -> Tensor:
    n = max(a.dim(), b.dim())
    sizes: List[int] = []
    for d in range(n):
        i = d - (n - a.dim())
        j = d - (n - b.dim())
        sizes.append(a.size(i) if i >= 0 else 1)
        sizes.append(b.size(j) if j >= 0 else 1)
    order: List[int] = []
    for d in range(n):
        order.append(2 * d)
    for d in range(n):
        order.append(2 * d + 1)
    return grad.reshape(sizes).permute(order).reshape([a.numel(), b.numel()])

def kron_left(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return torch.mv(kron_blocks(grad, self, other), other.conj().reshape([-1]).to(grad.dtype)).reshape(self.size())

def kron_right(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return torch.mv(kron_blocks(grad, self, other).t(), self.conj().reshape([-1]).to(grad.dtype)).reshape(other.size())

def cross_dim(self: Tensor, dim: Optional[int]) -> int:
    if dim is not None:
        return dim
    for d in range(self.dim()):
        if self.size(d) == 3:
            return d
    return -1

def plain_equation(equation: str, tensors: List[Tensor]) -> str:
    # Removes spaces and names the dimensions of an ellipsis, aligned at the last one.
    text = equation.replace(" ", "")
    if "." not in text:
        return text
    letters = ""
    for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        if c not in text:
            letters = letters + c
    names = text.split("->")[0].split(",")
    longest = 0
    widths: List[int] = []
    for i in range(len(names)):
        width = tensors[i].dim() - len(names[i].replace("...", "")) if "." in names[i] else 0
        widths.append(width)
        longest = max(longest, width)
    shared = letters[:longest]
    left: List[str] = []
    single = ""
    for i in range(len(names)):
        left.append(names[i].replace("...", shared[longest - widths[i]:]))
    if "->" in text:
        return ",".join(left) + "->" + text.split("->")[1].replace("...", shared)
    # The implicit result: the ellipsis, then letters that occur once, in order.
    plain = "".join(names).replace(".", "")
    for c in sorted([x for x in plain]):
        if plain.count(c) == 1:
            single = single + c
    return ",".join(left) + "->" + shared + single

def inner_body(self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    return torch.tensordot(self, other, dims=([-1], [-1]))

def tensordot_body(self: Tensor, other: Tensor, dims_self: List[int], dims_other: List[int]) -> Tensor:
    # A matrix product, with the summed dimensions adjacent.
    first: List[int] = []
    second: List[int] = []
    sizes: List[int] = []
    inner: List[int] = []
    outer: List[int] = []
    n = 1
    for i in range(len(dims_self)):
        a = dims_self[i] if dims_self[i] >= 0 else dims_self[i] + self.dim()
        b = dims_other[i] if dims_other[i] >= 0 else dims_other[i] + other.dim()
        # A dimension of size 1 is broadcast, so the other operand is summed over it.
        if self.size(a) == 1 and other.size(b) != 1:
            other = other.sum([b], True)
        elif other.size(b) == 1 and self.size(a) != 1:
            self = self.sum([a], True)
        n = n * self.size(a)
        inner.append(a)
        outer.append(b)
    rows = 1
    for d in range(self.dim()):
        if d not in inner:
            first.append(d)
            sizes.append(self.size(d))
            rows = rows * self.size(d)
    columns = 1
    for d in range(other.dim()):
        if d not in outer:
            second.append(d)
            sizes.append(other.size(d))
            columns = columns * other.size(d)
    left = self.permute(first + inner).reshape([rows, n])
    return torch.mm(left, other.permute(outer + second).reshape([n, columns])).reshape(sizes)
