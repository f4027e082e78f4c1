# Decompositions of PyTorch's table `core_aten_decompositions`.
