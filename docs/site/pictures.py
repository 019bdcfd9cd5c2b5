"""Pictures of the site: diagrams drawn beforehand, and screenshots that fit the colours of the page.

A git host draws mermaid itself. A page that did would load 2.5 MB of script; the picture needs none and
takes its colours from the page. `make diagrams` draws it (`render_diagrams.py`); its name is the digest of
its text. Of a screenshot that has a dark copy, the page shows the one that fits.
"""

import hashlib
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

DRAWN = Path(__file__).parent / "diagrams"
DARK = Path(__file__).parents[1] / "images/dark"
_SCREENSHOT = re.compile(r"(!\[[^\]]*\])\(((?:[^)\s]*/)?images/)([\w-]+\.png)\)")
FENCED = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def drawn(fence: re.Match[str]) -> str:
        picture = DRAWN / f"{digest(fence[1])}.svg"
        if not picture.is_file():
            raise PluginError(
                f"{page.file.src_uri}: a mermaid diagram is new or changed: run `make diagrams`"
            )
        return f'<div class="diagram">{picture.read_text(encoding="utf-8")}</div>'

    return _SCREENSHOT.sub(in_both_colours, FENCED.sub(drawn, markdown))


def in_both_colours(image: re.Match[str]) -> str:
    """By the names with which the theme tells them apart."""
    text, folder, name = image.groups()
    if not (DARK / name).is_file():
        return image[0]
    return f"{text}({folder}{name}#only-light){text}({folder}dark/{name}#only-dark)"


def digest(diagram: str) -> str:
    return hashlib.sha256(diagram.encode()).hexdigest()[:16]
