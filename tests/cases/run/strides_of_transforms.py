# test run
# Strides of Fourier transforms: dimensions that are not transformed are outermost, ordered by stride; the last dimension
# between real and complex numbers is innermost, and in the inverse of a Hermitian transform it precedes the others.


def turned(x: Tensor):
    return x.permute(2, 0, 1).contiguous().permute(1, 2, 0)


def of_one(x: Tensor):
    return [
        torch.fft.fft(x, dim=0).stride(),
        torch.fft.ifft(x, dim=1).stride(),
        torch.fft.fft(x, 9, 1).stride(),
        torch.fft.fft(x, 2, 1).stride(),
        torch.fft.irfft(x, dim=0).stride(),
        torch.fft.hfft(x, dim=1).stride(),
    ]


def of_reals(x: Tensor):
    return [
        torch.fft.fft(x, dim=1).stride(),
        torch.fft.rfft(x, dim=0).stride(),
        torch.fft.ihfft(x, dim=1).stride(),
        torch.fft.rfft2(x, dim=[0, 2]).stride(),
        torch.fft.rfftn(x, dim=[2, 1, 0]).stride(),
        torch.fft.ihfft2(x, dim=[0, 1]).stride(),
        torch.fft.ihfftn(x).stride(),
        torch.fft.fftn(x).stride(),
    ]


def of_many(x: Tensor):
    return [
        torch.fft.fft2(x).stride(),
        torch.fft.fft2(x, dim=[0, 2]).stride(),
        torch.fft.ifftn(x).stride(),
        torch.fft.ifftn(x, dim=[1, 0]).stride(),
        torch.fft.irfft2(x, dim=[1, 0]).stride(),
        torch.fft.irfftn(x).stride(),
        torch.fft.irfftn(x, dim=[0, 1]).stride(),
        torch.fft.hfft2(x).stride(),
        torch.fft.hfftn(x, dim=[2, 0]).stride(),
        torch.fft.fftn(x, s=[3, 9], dim=[0, 1]).stride(),
    ]


def all_of(x: Tensor, y: Tensor):
    return of_one(x), of_one(turned(x)), of_reals(y), of_reals(turned(y)), of_many(x), of_many(turned(x))


def of_few(x: Tensor):
    return [torch.fft.fft(x[:, :1].expand(4, 3, 5), dim=2).stride(), torch.fft.rfftn(x[:, :, :1].real).stride()]


# run: all_of(rand([4, 3, 5], c64, 1), rand([4, 3, 5], f32, 2)) == ([[1, 20, 4], [15, 1, 3], [45, 1, 9], [10, 1, 2], [1, 30, 6], [20, 1, 4]], [[1, 4, 12], [3, 1, 12], [45, 1, 9], [2, 1, 8], [1, 6, 18], [4, 1, 16]], [[15, 1, 3], [1, 15, 3], [10, 1, 2], [3, 12, 1], [1, 15, 3], [1, 4, 8], [3, 1, 12], [15, 5, 1]], [[3, 1, 12], [1, 3, 9], [2, 1, 8], [3, 12, 1], [1, 3, 9], [1, 4, 8], [3, 1, 12], [3, 1, 12]], [[15, 5, 1], [5, 20, 1], [15, 5, 1], [3, 1, 12], [1, 6, 18], [24, 8, 1], [4, 1, 16], [24, 8, 1], [1, 30, 6], [9, 1, 27]], [[15, 1, 3], [1, 20, 4], [3, 1, 12], [3, 1, 12], [1, 6, 18], [24, 8, 1], [4, 1, 16], [24, 8, 1], [1, 30, 6], [9, 1, 27]])
# run: of_few(rand([4, 3, 5], c64, 1)) == [[15, 5, 1], [3, 1, 1]]


def short(x: Tensor, window: Tensor):
    return [
        torch.stft(x, 8, 3, return_complex=True).stride(),
        torch.stft(x, 8, 3, window=window, return_complex=True).stride(),
        torch.stft(x.t().contiguous().t(), 8, 3, center=False, return_complex=True).stride(),
        torch.stft(x.t().contiguous().t(), 8, 3, window=window, center=False, return_complex=True).stride(),
        torch.stft(x[0], 8, 3, return_complex=False).stride(),
        torch.stft(x, 8, 3, onesided=False, return_complex=True).stride(),
    ]


# run: short(rand([2, 24], f32, 1), rand([8], f32, 2)) == [[45, 1, 5], [45, 1, 5], [5, 1, 10], [5, 1, 10], [2, 10, 1], [72, 1, 8]]


def shifted(x: Tensor):
    x = x.contiguous(memory_format=torch.channels_last)
    return [
        torch.fft.fftshift(x).stride(),
        torch.fft.ifftshift(x, dim=[0]).stride(),
        torch.fft.fftshift(x, dim=[3]).stride(),
        torch.roll(x, [1, 1], [1, 2]).stride(),
        torch.roll(x, [1, 0], [1, 2]).stride(),
        torch.roll(x, [4], [2]).stride(),
        torch.roll(x, [1], [0]).stride(),
        torch.roll(x, 1).stride(),
    ]


# run: shifted(rand([2, 3, 4, 1], f32, 1)) == [[12, 4, 1, 1], [12, 1, 3, 3], [12, 4, 1, 1], [12, 1, 3, 3], [12, 4, 1, 1], [12, 4, 1, 1], [12, 1, 3, 3], [12, 4, 1, 1]]
# run: shifted(rand([1, 3, 4, 5], f32, 1)) == [[60, 20, 5, 1], [60, 20, 5, 1], [60, 1, 15, 3], [60, 1, 15, 3], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1]]
