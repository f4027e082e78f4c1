class autocast:
    _enabled: bool
    device: str
    fast_dtype: int
    def __init__(self, device_type: str, dtype: Optional[int] = None, enabled: bool = True, cache_enabled: Optional[bool] = None) -> None:
        self._enabled = enabled
        self.device = device_type
        self.fast_dtype = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and device_type == "cpu":
            raise NotImplementedError("torch.autocast for the CPU is not supported in a program")
    def __enter__(self) -> autocast:
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
