"""The small ports: the doorbell, what a bucket knows of checkpoints, what listeners are told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


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


@dataclass(slots=True)
class MemoryNotifier:
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        self.told.append((kind, detail))
