class autocast:
    _enabled: bool
    device: str
    fast_dtype: int
    def __init__(self, enabled: bool = True, dtype: int = 5, cache_enabled: bool = True) -> None:
        self._enabled = enabled
        self.device = "cuda"
        self.fast_dtype = dtype
    def __enter__(self) -> autocast:
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
