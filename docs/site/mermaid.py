"""Diagrams of the site: what a document writes in mermaid, as a picture that was drawn beforehand.

A git host draws mermaid itself. A page that did would load 2.5 MB of script; the picture needs no script
and takes its colours from the page. `make diagrams` draws it (`render_diagrams.py`); its name is the
digest of the text.
"""

import hashlib
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

DRAWN = Path(__file__).parent / "diagrams"
FENCED = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def drawn(fence: re.Match[str]) -> str:
        picture = DRAWN / f"{digest(fence[1])}.svg"
        if not picture.is_file():
            raise PluginError(
                f"{page.file.src_uri}: a mermaid diagram is new or changed: run `make diagrams`"
            )
        return f'<div class="diagram">{picture.read_text(encoding="utf-8")}</div>'

    return FENCED.sub(drawn, markdown)


def digest(diagram: str) -> str:
    return hashlib.sha256(diagram.encode()).hexdigest()[:16]
