# for each $kind; $type; $results in
#   ; Tensor; output
#   __return_inverse; Tuple[Tensor, Tensor]; output, inverse
#   __return_counts; Tuple[Tensor, Tensor]; output, counts
#   __return_inverse__return_counts; Tuple[Tensor, Tensor, Tensor]; output, inverse, counts
def unique$kind(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> $type:
    if dim is not None:
        output, inverse, counts = torch.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        output, inverse, counts = torch._unique2(input, sorted, return_inverse, return_counts)
    return $results

# for each $kind; $type; $results in
#   ; Tensor; output
#   __return_inverse; Tuple[Tensor, Tensor]; output, inverse
#   __return_counts; Tuple[Tensor, Tensor]; output, counts
#   __return_inverse__return_counts; Tuple[Tensor, Tensor, Tensor]; output, inverse, counts
def unique_consecutive$kind(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> $type:
    output, inverse, counts = torch._VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return $results

def stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None, return_complex: Optional[bool] = None) -> Tensor:
    return torch._VF.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex)

def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    factors, pivots, infos = torch._lu_with_info(A, pivot, not get_infos)
    if out is not None:
        out[0].resize_as_(factors).copy_(factors)
        out[1].resize_as_(pivots).copy_(pivots)
        return out
    return factors, pivots

def lu__get_infos(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Optional[Tuple[Tensor, Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor, Tensor]:
    factors, pivots, infos = torch._lu_with_info(A, pivot, not get_infos)
    if out is not None:
        out[0].resize_as_(factors).copy_(factors)
        out[1].resize_as_(pivots).copy_(pivots)
        out[2].resize_as_(infos).copy_(infos)
        return out
    return factors, pivots, infos
