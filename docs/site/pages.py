"""The records of decisions, which no document lists, as pages; and how much each page counts in search."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_DECISIONS = "adr"
_HEADING = re.compile(r"# (\d+)\. (.+)\n+(.+)")
_INTRODUCTION = """# Decisions

Why things are as they are. Each record is half a page: the question, what was decided, what it costs.

| | decision | state |
|--:|---|---|
"""
BOOSTS = {
    "adr/": 0.0005,
    "repository/": 0.0005,
    "benchmarks": 0.01,
    "ARCHITECTURE": 0.01,
    "sdk-v3": 0.5,
    "concepts": 4,
    "policy": 2,
    "training/preemption": 2,
}
"""Beginnings of pages, and what a hit there counts beside one in a guide or the reference. A hit in a heading
counts 1,000, so one below 0.001 comes after the text of the others."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config["nav"] = expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page that lists the decisions, in a site that has some."""
    records = [file for file in files.documentation_pages() if file.src_uri.startswith(f"{_DECISIONS}/")]
    if records:
        files.append(File.generated(config, f"{_DECISIONS}/index.md", content=decisions(records)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    for beginning, boost in BOOSTS.items():
        if page.file.src_uri.startswith(beginning):
            page.meta["search"] = {"boost": boost}
    return markdown


def expanded(nav: object, docs: Path) -> object:
    """The navigation, with the index and the pages of a folder in place of ``folder/*``."""
    if isinstance(nav, dict):
        return {title: expanded(below, docs) for title, below in nav.items()}
    if isinstance(nav, list):
        return [expanded(below, docs) for below in nav]
    if isinstance(nav, str) and nav.endswith("/*"):
        pages = sorted(path.name for path in docs.glob(f"{nav}.md") if path.name != "index.md")
        return [f"{nav[:-1]}{name}" for name in ("index.md", *pages)]
    return nav


def decisions(records: list[File]) -> str:
    """Newest first: the question somebody asks today is seldom the first one."""
    rows = [row(file) for file in sorted(records, key=lambda file: file.src_uri, reverse=True)]
    return _INTRODUCTION + "".join(rows)


def row(file: File) -> str:
    heading = _HEADING.match(file.content_string)
    if heading is None:
        raise ValueError(f"{file.src_uri}: begin with '# NUMBER. TITLE' and, below it, the state")
    number, title, state = heading.groups()
    return f"| {number} | [{title}]({Path(file.src_uri).name}) | {state.rstrip('.')} |\n"
