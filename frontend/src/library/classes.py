class no_grad:
    prev: bool
    def __init__(self) -> None:
        self.prev = False
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)

class enable_grad:
    prev: bool
    def __init__(self) -> None:
        self.prev = False
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)

class inference_mode:
    prev: bool
    mode: bool
    def __init__(self, mode: bool = True) -> None:
        self.prev = False
        self.mode = mode
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        if self.mode:
            torch.set_grad_enabled(False)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)
