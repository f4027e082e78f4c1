# Functions for the formulas of `pointwise.grads`: elementwise operators.

def rounded(grad: Tensor, rounding_mode: Optional[str]) -> Tensor:
    return grad if rounding_mode is None else torch.zeros_like(grad)

def sgn_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.zeros_like(grad)
    size = self.abs()
    unit = self.sgn()
    return ((grad - torch.real(unit * grad.conj()) * unit) / size).masked_fill(size == 0, 0.0)

def acosh_slope(self: Tensor) -> Tensor:
    if self.is_complex():
        return ((self - 1).rsqrt() * (self + 1).rsqrt()).conj()
    return (self * self - 1).rsqrt()

def angle_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.zeros_like(self)
    squared = torch.real(self * self.conj())
    return (grad * (self / squared) * 1j).masked_fill(squared == 0, 0.0)

def logit_gradient(grad: Tensor, self: Tensor, eps: Optional[float]) -> Tensor:
    slope = grad / (self * (1 - self))
    if eps is not None:
        is_outside = (self < eps).logical_or(self > 1 - eps)
        # As in PyTorch, NaN counts as outside if the gradient will be differentiated.
        return slope.masked_fill(is_outside.logical_or(self.isnan()) if torch.is_grad_enabled() else is_outside, 0.0)
    if not torch.is_grad_enabled():
        # At both borders infinity, also at -0.0.
        slope = torch.where((self == 0).logical_or(self == 1), grad * float("inf"), slope)
    return slope.masked_fill((self < 0).logical_or(self > 1), float("nan"))

def mvlgamma_gradient(grad: Tensor, self: Tensor, p: int) -> Tensor:
    total = torch.zeros_like(self)
    for i in range(p):
        total = total + torch.digamma(self - 0.5 * i)
    return grad * total

def power_gradient(grad: Tensor, self: Tensor, exponent: float) -> Tensor:
    if exponent == 0.0:
        return torch.zeros_like(grad)
    return grad * (self.pow(exponent - 1) * exponent).conj()

def power_exponent_gradient(grad: Tensor, self: float, exponent: Tensor, result: Tensor) -> Tensor:
    if self == 0.0:
        zero = torch.zeros([], dtype=result.dtype)
        return grad * torch.where(exponent >= 0, zero, (result * float("-inf")).conj())
    return grad * (result * math.log(self)).conj()

def tensor_exponent_gradient(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    # The derivative of a power of zero with respect to a nonnegative exponent is zero.
    size = exponent.real if exponent.is_complex() else exponent
    zero = torch.zeros([], dtype=result.dtype)
    return grad * torch.where((self == 0).logical_and(size >= 0), zero, (result * self.log()).conj())

def tensor_base_gradient(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    found = grad * (exponent * self.pow(exponent - 1)).conj()
    return torch.where(exponent == 0, torch.zeros([], dtype=found.dtype), found)

def sinc_gradient(grad: Tensor, self: Tensor) -> Tensor:
    angle = self * 3.141592653589793
    square = self * self * 3.141592653589793
    found = grad * ((angle * angle.cos() - angle.sin()) / square).conj()
    return found.masked_fill(square == 0, 0.0)

def is_tiny(self: Tensor) -> Tensor:
    return (self.abs() > (2.220446049250313e-16 if self.dtype == torch.float64 else 1.1920928955078125e-07)).logical_not()

def away_from_zero(self: Tensor) -> Tensor:
    # Tiny elements are replaced, so that the derivative of the unused branch is finite, too.
    return self.masked_fill(is_tiny(self), 2.220446049250313e-16 if self.dtype == torch.float64 else 1.1920928955078125e-07)

def bessel_slope(own: Tensor, rest: Tensor, self: Tensor) -> Tensor:
    return (own - rest).masked_fill(is_tiny(self), 0.5)

def copysign_factor(self: Tensor, result: Tensor) -> Tensor:
    return (result / self).masked_fill(self == 0, 0.0)

def larger(a: Tensor, b: Tensor) -> Tensor:
    # The derivative of a maximum with respect to `a`: 1, 0, or 0.5 if the operands are equal.
    kind = a.dtype if a.is_floating_point() else b.dtype
    return ((a == b).to(kind) * -0.5 + 1.0).masked_fill(a < b, 0.0)

def clamp_gradient(grad: Tensor, self: Tensor, min: Optional[float], max: Optional[float]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill((self >= min).logical_not(), 0.0)
    if max is not None:
        grad = grad.masked_fill((self <= max).logical_not(), 0.0)
    return grad

def clamp_tensor_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill((self >= min).logical_not(), 0.0)
    if max is not None:
        grad = grad.masked_fill((self <= max).logical_not(), 0.0)
    return grad

def clamp_min_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill((self < min).logical_not(), 0.0)
        if max is not None:
            grad = grad.masked_fill((min < max).logical_not(), 0.0)
    return grad

def clamp_max_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if max is not None:
        keep = self > max
        if min is not None:
            keep = keep.logical_or(min > max)
        grad = grad.masked_fill(keep.logical_not(), 0.0)
    return grad

def real_gradient(grad: Tensor) -> Tensor:
    return grad if grad.is_complex() else torch.complex(grad, torch.zeros_like(grad))

def imag_gradient(grad: Tensor) -> Tensor:
    return torch.complex(torch.zeros_like(grad), grad)

def dropout_gradient(grad: Tensor, input: Tensor, result: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return grad
    return (grad * (1.0 / (1.0 - p) if p < 1.0 else 0.0)).masked_fill((result == 0).logical_and(input != 0), 0.0)

def alpha_dropout_gradient(grad: Tensor, result: Tensor, p: float, train: bool) -> Tensor:
    # Dropped elements have a constant value.
    if not train or p == 0.0:
        return grad
    if p == 1.0:
        return torch.zeros_like(grad)
    alpha = 1.7580993408473766
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1.0) * (1.0 - p))
    dropped = (result + alpha * scale * (1.0 - p)).abs() < 1e-6
    return (grad * scale).masked_fill(dropped, 0.0)

def complex_of_pairs(pairs: Tensor) -> Tensor:
    # A view needs contiguous pairs at an even position.
    return torch.complex(pairs.select(-1, 0), pairs.select(-1, 1))
