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
    "woff2": "font/woff2",
}
"""Content type of a file by its suffix; other files are not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    content: bytes
    kind: str
    etag: str


def web_files() -> Mapping[str, WebFile]:
    """Return the files by their path in the folder, as in ``pages/now.js``."""
    return dict(_found(files(__package__) / "web", ""))


def _found(folder: Traversable, path: str) -> list[tuple[str, WebFile]]:
    found_files: list[tuple[str, WebFile]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found_files += _found(entry, f"{path}{entry.name}/")
        elif (kind := _KINDS.get(entry.name.rpartition(".")[2])) is not None:
            found_files.append((f"{path}{entry.name}", _read(entry, kind)))
    return found_files


def _read(file: Traversable, kind: str) -> WebFile:
    content = file.read_bytes()
    return WebFile(content=content, kind=kind, etag=f'"{sha256(content).hexdigest()[:32]}"')
