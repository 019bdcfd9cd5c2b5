"""Jobs of the queue as a client knows them: views, progress, and the names that belong to them.

Called, ``trainmaster_client.jobs()``, it lists them as handles: ``trainmaster_client.handles.jobs``.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """The function and the room have one name, and whichever import comes first both work."""

    def __call__(self, **options: Any) -> Any:  # noqa: ANN401  of handles.jobs
        return import_module("trainmaster_client.handles").jobs(**options)


sys.modules[__name__].__class__ = _Room
