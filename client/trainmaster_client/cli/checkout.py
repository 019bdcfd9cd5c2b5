"""What comes with the client beside its packages: the twin, what it deploys, and the training program."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_COPY = _PACKAGE / "_checkout"


def checkout() -> Path:
    """The folder with ``local``, ``template.yaml`` and ``training``.

    An installed wheel has its copy of them in the client (pyproject.toml); an editable install has the
    checkout itself.
    """
    return _COPY if _COPY.is_dir() else _PACKAGE.parents[1]
