"""Archives whose bytes depend on their contents alone, and checksums."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can have."""
_FILE = 0o100644 << 16
_SKIPPED = "__pycache__"


def files_below(folder: Path, *, with_bytecode: bool = False) -> dict[str, Path]:
    """List all files of a folder by their paths in it.

    Bytecode is left out, as Python writes it by the way; that of the built layer was made on purpose.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    kept = (path for path in files if with_bytecode or _SKIPPED not in path.parts)
    return {path.relative_to(folder).as_posix(): path for path in kept}


def write_zip(archive: Path, contents: Mapping[str, Path]) -> None:
    """Write the files in the order of their names, all of one time and one mode."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as into:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _FIRST_DAY)
            entry.external_attr = _FILE
            entry.compress_type = zipfile.ZIP_DEFLATED
            into.writestr(entry, contents[name].read_bytes())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums(folder: Path) -> dict[str, str]:
    """``SHA256SUMS`` of all files in a folder, as ``sha256sum --check`` reads it; the sums."""
    sums = {name: sha256(path) for name, path in sorted(files_below(folder).items())}
    text = "".join(f"{found}  {name}\n" for name, found in sums.items())
    (folder / "SHA256SUMS").write_text(text, encoding="utf-8")
    return sums
