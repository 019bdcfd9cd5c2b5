"""What a user of trainmaster installs: the SageMaker SDK session, the API client, the command line.

``trainmaster_client.submit``, ``job`` and ``jobs`` make handles on jobs; they are loaded when asked for.
"""

from importlib import import_module
from typing import Any

_HANDLES = frozenset({"job", "submit"})


def __getattr__(name: str) -> Any:  # noqa: ANN401  a function, or a room
    if name in _HANDLES:
        return getattr(import_module("trainmaster_client.handles"), name)
    if name == "jobs":
        return import_module("trainmaster_client.jobs")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
