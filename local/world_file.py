"""The world that a user names, or records in a file."""

from pathlib import Path

from local.deployment.deployment_errors import DeploymentError
from local.documents import read_map
from local.worlds import KIND, WORLDS, World, WorldError, changed


class WorldFileError(DeploymentError):
    """Raised if there is no such world, or its file does not describe one."""


def read_world(name_or_file: str) -> World:
    """Return a world by its name, else the kind one with the values of a YAML or JSON file.

    Raises:
        WorldFileError: there is none, or a value is not what it has to be.
    """
    if name_or_file in WORLDS:
        return WORLDS[name_or_file]
    path = Path(name_or_file)
    if not path.exists():
        raise WorldFileError(f"world {name_or_file}: neither a file nor one of {', '.join(WORLDS)}")
    try:
        return changed(KIND, read_map(path, what="world", error_kind=WorldFileError))
    except WorldError as error:
        raise WorldFileError(f"world {path}: {error}") from error
