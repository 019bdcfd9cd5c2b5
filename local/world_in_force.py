"""The world that the twin is in, and that may change while it runs."""

import threading
from collections.abc import Mapping
from typing import Any

from local.worlds import KIND, World, changed


class WorldInForce:
    def __init__(self, world: World = KIND) -> None:
        self._lock = threading.Lock()
        self._world = world

    @property
    def now(self) -> World:
        return self._world

    def set(self, values: Mapping[str, Any]) -> World:
        """Set these values, all or none; what is under way goes on as it began. Raises ``WorldError``."""
        with self._lock:
            self._world = changed(self._world, values)
            return self._world

    def set_quota(self, instance_type: str, capacity_type: str, instances: int) -> None:
        """Set one quota beside those there are. Raises ``WorldError``."""
        with self._lock:
            quotas = self._world.quotas
            of_type = {**quotas.get(instance_type, {}), capacity_type: instances}
            self._world = changed(self._world, {"quotas": {**quotas, instance_type: of_type}})
