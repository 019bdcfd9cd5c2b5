"""Chooses the unit of instance-hours: GPUs if every type has them, else instances."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

from trainmaster.core.memory.accelerators import gpus


class Held(Protocol):
    """An attempt, or a warm pool."""

    @property
    def instance_type(self) -> str: ...
    @property
    def instances(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    unit: str
    """``GPU`` or ``instance``."""
    by_type: Mapping[str, int]
    """GPUs of one instance; empty where instances are counted."""

    @classmethod
    def of_types(cls, instance_types: Iterable[str]) -> Self:
        """Count GPUs if every type is known to have them: else a sum of GPUs means nothing."""
        counts = {instance_type: gpus(instance_type) for instance_type in instance_types}
        known = {instance_type: count for instance_type, count in counts.items() if count}
        if counts and len(known) == len(counts):
            return cls(unit="GPU", by_type=known)
        return cls(unit="instance", by_type={})

    def each(self, instance_type: str) -> int:
        return self.by_type.get(instance_type, 1)

    def of(self, held: Held) -> int:
        return held.instances * self.each(held.instance_type)
