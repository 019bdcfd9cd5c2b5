"""What instance-hours are counted in: GPUs where every type has them, else instances."""

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
        """A type without GPUs, or one that is not known, makes a sum of GPUs meaningless."""
        found = {one: gpus(one) for one in instance_types}
        known = {one: count for one, count in found.items() if count}
        if found and len(known) == len(found):
            return cls(unit="GPU", by_type=known)
        return cls(unit="instance", by_type={})

    def each(self, instance_type: str) -> int:
        return self.by_type.get(instance_type, 1)

    def of(self, held: Held) -> int:
        return held.instances * self.each(held.instance_type)
