"""The package that users of trainmaster install: SageMaker SDK session, API client, command line.

``trainmaster_client.submit``, ``job`` and ``jobs`` make handles on jobs, ``submit_array`` and ``array`` on
arrays; they are loaded when asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster_client.handles import array, job, jobs, submit, submit_array

__all__ = ["array", "job", "jobs", "submit", "submit_array"]

_HANDLES = frozenset({"array", "job", "submit", "submit_array"})


def __dir__() -> list[str]:
    """Show what is only loaded when it is asked for, so that the tab key of a notebook finds it."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:  # noqa: ANN401  a function, or a room
    if name in _HANDLES:
        return getattr(import_module("trainmaster_client.handles"), name)
    if name == "jobs":
        return import_module("trainmaster_client.jobs")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
