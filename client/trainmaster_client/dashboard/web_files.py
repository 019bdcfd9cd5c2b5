"""The dashboard's files as they lie in the package: read once, known by name, no secret in any of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

INDEX = "index.html"
_KINDS: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Of a file by its suffix; no others are served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    content: bytes
    kind: str
    etag: str


def web_files() -> Mapping[str, WebFile]:
    """By their path in the folder, as in ``pages/now.js``."""
    return dict(_found(files(__package__) / "web", ""))


def _found(folder: Traversable, path: str) -> list[tuple[str, WebFile]]:
    found: list[tuple[str, WebFile]] = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _found(one, f"{path}{one.name}/")
        elif (kind := _KINDS.get(one.name.rpartition(".")[2])) is not None:
            found.append((f"{path}{one.name}", _read(one, kind)))
    return found


def _read(file: Traversable, kind: str) -> WebFile:
    content = file.read_bytes()
    return WebFile(content=content, kind=kind, etag=f'"{sha256(content).hexdigest()[:32]}"')
