"""Which instances there are: all that are asked for, unless a test says otherwise."""

import threading
from collections import Counter
from collections.abc import Sequence

from local.sagemaker.spec import InstanceGroup


class Capacity:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._missing: Counter[str] = Counter()

    def withhold(self, instance_type: str, times: int) -> None:
        """Withhold this type from the next ``times`` launches that ask for it."""
        with self._lock:
            self._missing[instance_type] += times

    def allot(self, choices: Sequence[tuple[InstanceGroup, ...]]) -> tuple[InstanceGroup, ...] | None:
        """Return the first cluster, in order of preference, that can be had whole; None if there is none."""
        return next((groups for groups in choices if all(self._has(group) for group in groups)), None)

    def _has(self, group: InstanceGroup) -> bool:
        with self._lock:
            if not self._missing[group.instance_type]:
                return True
            self._missing[group.instance_type] -= 1
            return False
