"""The small ports: the doorbell, and what a bucket knows of checkpoints."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class MemoryDoorbell:
    rung: list[str] = field(default_factory=list)
    """Pools, in the order of their rings; whoever answers takes them out."""

    def ring(self, pools: Iterable[str]) -> None:
        self.rung += pools


@dataclass(slots=True)
class MemoryCheckpoints:
    written: dict[str, datetime] = field(default_factory=dict)
    """By S3 URI."""

    def newest(self, uri: str) -> datetime | None:
        return self.written.get(uri)
