"""Contexts that state whether calls of this thread record gradients, as those of PyTorch."""

from __future__ import annotations

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any


class _GradMode:
    """A context, and a decorator of functions, that sets whether calls record gradients."""

    _torch_path = "torch.set_grad_enabled"
    _enabled = True

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_native.set_grad_enabled(self._enabled))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _native.set_grad_enabled(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_mode

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class no_grad(_GradMode):
    """Within this context calls of this thread record no gradients."""

    _torch_path = "torch.no_grad"
    _enabled = False


class enable_grad(_GradMode):
    """Within this context calls of this thread record gradients, also within ``no_grad``."""

    _torch_path = "torch.enable_grad"


class set_grad_enabled(_GradMode):
    """Sets whether calls of this thread record gradients: from now on, or within the context that this is."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = bool(mode)
        self._outer = _native.set_grad_enabled(self._enabled)

    def __enter__(self) -> None:
        _native.set_grad_enabled(self._enabled)
        self._before.append(self._outer)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # As a decorator it sets the mode of the function's calls only.
        _native.set_grad_enabled(self._outer)
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"set_grad_enabled({self._enabled})"


def is_grad_enabled() -> bool:
    """Returns whether calls of this thread record gradients."""
    enabled = _native.set_grad_enabled(True)
    _native.set_grad_enabled(enabled)
    return enabled


is_grad_enabled._torch_path = "torch.is_grad_enabled"  # type: ignore[attr-defined]
