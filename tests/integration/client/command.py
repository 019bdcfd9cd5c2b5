"""The command line run in this process: what a test calls, and what it gets."""

from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Trainmaster = Callable[..., Ran]
