# test source
# Arguments equal to their defaults are omitted, unless an earlier overload would then accept the call.
def f(x: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.stft(x, 4, 4, center=True), torch.ops.aten.stft(x, 4, 4)

# run: f(full([8], complex(1.0, 2.0), c64)) == (tensor([[complex(4.0, 8.0), complex(4.0, 8.0), complex(4.0, 8.0)], [complex(0.0, 0.0), complex(0.0, 0.0), complex(0.0, 0.0)], [complex(0.0, 0.0), complex(0.0, 0.0), complex(0.0, 0.0)], [complex(0.0, 0.0), complex(0.0, 0.0), complex(0.0, 0.0)]], c64), tensor([[complex(4.0, 8.0), complex(4.0, 8.0)], [complex(0.0, 0.0), complex(0.0, 0.0)], [complex(0.0, 0.0), complex(0.0, 0.0)], [complex(0.0, 0.0), complex(0.0, 0.0)]], c64))
# run: f(rand([8], f32, 1)) raises "stft requires the return_complex parameter be given for real inputs"

# == source
# def f(x: Tensor) -> Tuple[Tensor, Tensor]:
#   _0 = torch.stft(x, 4, 4, None, None, True, "reflect")
#   return (_0, torch.stft(x, 4, 4))
