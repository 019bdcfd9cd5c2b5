"""A manifest and what a host sees of its checkpoint; a test says what it is about."""

from typing import Any

from training.preemptible.checkpoint.manifest import Manifest, Sight

FILES = {"__0_0.distcp": 40, "__1_0.distcp": 50, "metadata": 7}


def manifest(**values: Any) -> Manifest:
    usual = {
        "step": 10,
        "world_size": 2,
        "hosts": 1,
        "guard": {},
        "carried": {},
        "files": FILES,
        "seconds": 2.0,
        "saved_at": "2026-11-21T12:00:00.000+00:00",
    }
    return Manifest(**{**usual, **values})


def sight(step: int = 10, *, without: str = "", cut: str = "") -> Sight:
    """Of a whole checkpoint, but for a file that is missing and one that is a byte short."""
    sizes = {name: size - (name == cut) for name, size in FILES.items() if name != without}
    return Sight(manifest=manifest(step=step).text(), sizes=sizes)
