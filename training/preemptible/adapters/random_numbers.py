"""Random numbers of this process: their states taken and put back, and numbers drawn aside from them."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import torch


def random_numbers() -> dict[str, Any]:
    """Take the states of Python's, NumPy's and torch's generators, as plain values that can be saved."""
    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if (numpy := sys.modules.get("numpy")) is not None:
        name, keys, *rest = numpy.random.get_state()
        states["numpy"] = (name, keys.tolist(), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def put_back(states: dict[str, Any]) -> None:
    """Set every generator to the state that ``random_numbers`` took."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    torch.set_rng_state(states["torch"])
    if "numpy" in states and (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.set_state(states["numpy"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def mixed(*parts: object) -> int:
    """Derive a seed below 2**63 from these numbers and texts; equal parts give equal seeds anywhere."""
    digest = blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_all(seed: int) -> None:
    """Seed the generators of the CPU; those of devices draw nothing for data, and are left alone."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


class Aside:
    """Random numbers for one purpose alone, which continue where they were each time they are taken.

    All other code draws as if these had never been drawn.
    """

    def __init__(self, seed: int) -> None:
        self._seed: int | None = seed
        self._states: tuple[Any, ...] = ()
        self._others: tuple[Any, ...] | None = None

    def take(self) -> None:
        """Draw from these numbers from here on; taking them twice does nothing."""
        if self._others is not None:
            return
        self._others = _states_of_cpu()
        if self._seed is None:
            _set_states_of_cpu(self._states)
        else:
            seed_all(self._seed)
            self._seed = None

    def give_back(self) -> None:
        """Draw from the others again, if these were taken."""
        if self._others is not None:
            self._states = _states_of_cpu()
            _set_states_of_cpu(self._others)
            self._others = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take these numbers within the block."""
        self.take()
        try:
            yield
        finally:
            self.give_back()


def _states_of_cpu() -> tuple[Any, ...]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), torch.get_rng_state(), numpy and numpy.random.get_state()


def _set_states_of_cpu(states: tuple[Any, ...]) -> None:
    python, torchs, numpys = states
    random.setstate(python)
    torch.set_rng_state(torchs)
    if numpys is not None and (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.set_state(numpys)
