"""Links of the site: what a document links to outside of docs/ becomes a part of the site.

On a git host every relative link works. mkdocs knows docs/ alone, so each file outside of it that some
document or the navigation links to is taken along, below repository/, and the links are written anew. No
address is needed.
"""

import os.path
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = "repository"
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def heading_id(heading: str, separator: str) -> str:
    """As git hosts name headings: each space is a separator, also beside another one."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"]["slugify"] = heading_id
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes along what is linked to, and what those documents link to in turn."""
    wanted = [target for page in files.documentation_pages() for target in linked(page)]
    wanted += [origin(uri) for uri in in_nav(config.nav)]
    while wanted:
        target = wanted.pop()
        if (ROOT / target).is_file() and files.get_file_from_path(place(target)) is None:
            taken = File.generated(config, place(target), abs_src_path=str(ROOT / target))
            files.append(taken)
            wanted += linked(taken) if taken.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = origin(page.file.src_uri)
    folder = PurePosixPath(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        target = resolved(link[1], here)
        known = files.get_file_from_path(place(target)) is not None
        return os.path.relpath(place(target), folder) if known else link[1]

    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)


def in_nav(nav: object) -> list[str]:
    """The pages that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        return in_nav(list(nav.values()))
    return [uri for part in nav for uri in in_nav(part)] if isinstance(nav, list) else []


def linked(page: File) -> list[PurePosixPath]:
    text = Path(page.abs_src_path or "").read_text(encoding="utf-8")
    return targets(text, origin(page.src_uri))


def origin(uri: str) -> PurePosixPath:
    """Where a file of the site lies in the checkout."""
    path = PurePosixPath(uri)
    return path.relative_to(OUTSIDE) if path.parts[0] == OUTSIDE else "docs" / path


def place(path: PurePosixPath) -> str:
    """Where a file of the checkout lies in the site."""
    inside = path.is_relative_to("docs")
    return str(path.relative_to("docs") if inside else OUTSIDE / path)


def targets(markdown: str, here: PurePosixPath) -> list[PurePosixPath]:
    return [resolved(link, here) for link in _LINK.findall(_FENCED.sub("", markdown))]


def resolved(link: str, here: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(here.parent / link))
