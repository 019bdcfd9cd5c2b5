"""Functions of ours around those of one object of a library; its class and other objects stay as they are."""

from collections.abc import Callable, Iterable
from typing import Any


def around(owner: Any, name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Have this object call our function instead of its own, which it returns; repeating it replaces ours."""
    vars(owner).pop(name, None)
    own: Callable[..., Any] = getattr(owner, name)
    setattr(owner, name, ours)
    return own


def unwrap(owner: Any, names: Iterable[str]) -> None:
    """Have this object call its own functions again."""
    for name in names:
        vars(owner).pop(name, None)
