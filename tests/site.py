"""The site of the documents, built for tests."""

from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config


def make_site(checkout: Path, target: Path) -> Path:
    """Raises mkdocs' Abort where a document is wrong."""
    build(load_config(str(checkout / "mkdocs.yml"), site_dir=str(target)))
    return target
