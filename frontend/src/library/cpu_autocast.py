class autocast:
    _enabled: bool
    device: str
    fast_dtype: int
    def __init__(self, enabled: bool = True, dtype: int = 15, cache_enabled: bool = True) -> None:
        self._enabled = enabled
        self.device = "cpu"
        self.fast_dtype = dtype
        if enabled:
            raise NotImplementedError("torch.autocast for the CPU is not supported in a program")
    def __enter__(self) -> autocast:
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
