"""The site is built from the documents, strictly, and shows what a git host shows."""

import json
import re
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from mkdocs.exceptions import Abort

from tests.markdown import ROOT
from tests.site import make_site

PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
SHOWN = ("h2", "h3", "ul", "ol", "li", "table", "tr", "td", "pre", "code", "strong", "em")
BODY = re.compile(r'<article class="md-content__inner md-typeset">(.*?)</article>', re.DOTALL)
DIAGRAM = re.compile(r'<div class="diagram">.*?</div>', re.DOTALL)
MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.DOTALL | re.MULTILINE)
NEXT = re.compile(r'<link rel="next" href="([^"#]+)"')
ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object|input)\b[^>]*?\b(?:src|srcset|data)=["']?(?:https?:)?//"""
    r"""|<link\b(?![^>]*rel="canonical")[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|@import\s*["']|url\(\s*["']?(?:https?:)?//""",
    re.IGNORECASE,
)
"""What a browser would fetch from another host, in HTML or CSS."""
ON_DEMAND = re.compile(r'class="(?:[^"]* )?mermaid|data-md-component="source"|class="[^"]*language-mermaid')
"""What the theme's program would fetch from another host for."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(ROOT, tmp_path_factory.mktemp("site").resolve())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of two pages, with the configuration of this one."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs/site", tmp_path / "docs/site")
    (tmp_path / "README.md").write_text("# Readme\n\n[home](docs/index.md) [more](MORE.md)\n")
    (tmp_path / "MORE.md").write_text("# More - and more\n")
    (tmp_path / "docs/index.md").write_text(
        "# Home\n\n[read](../README.md) [more](../MORE.md#more---and-more)\n"
    )
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[0]
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\nnav:\n  - index.md\n")
    return tmp_path


def html_of(name: str) -> str:
    path = Path(name)
    return path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html").as_posix()


def shown(html: str) -> dict[str, int]:
    return {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in SHOWN}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site_has_the_same_parts_as_on_a_git_host(site: Path, name: str) -> None:
    body = BODY.search((site / html_of(name)).read_text(encoding="utf-8"))
    assert body is not None
    text, diagrams = MERMAID.subn("", (ROOT / "docs" / name).read_text(encoding="utf-8"))
    there = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    here, pictures = DIAGRAM.subn("", body[1])
    assert shown(here) == shown(there)
    assert pictures == diagrams


def test_no_page_fetches_from_another_host(site: Path) -> None:
    found = {
        str(path.relative_to(site)): found[0]
        for path in site.rglob("*")
        if path.suffix in {".html", ".css", ".svg"}
        and (found := ELSEWHERE.search(text := path.read_text(encoding="utf-8")) or ON_DEMAND.search(text))
    }
    assert found == {}


@pytest.mark.parametrize(
    "part",
    [
        '<script src="https://cdn.example/x.js">',
        '<img alt="x" src=//cdn.example/x.png>',
        '<link href="https://fonts.example/x.css" rel="stylesheet">',
        "@font-face { src: url(https://fonts.example/x.woff2) }",
        '@import "x.css"',
    ],
)
def test_what_a_page_would_fetch_is_seen(part: str) -> None:
    assert ELSEWHERE.search(part)


def test_each_decision_is_in_the_navigation_and_in_the_list_of_decisions(site: Path) -> None:
    records = sorted(path.stem for path in (ROOT / "docs/adr").glob("*.md"))
    listed = (site / "adr/index.html").read_text(encoding="utf-8")
    body = BODY.search(listed)
    assert body is not None
    assert re.findall(r'<td><a href="([\w-]+)\.html"', body[1]) == records[::-1]
    assert set(re.findall(r'<a href="([\w-]+)\.html" class="md-nav__link"', listed)) >= set(records)


def test_next_leads_through_every_page_of_documents_and_decisions(site: Path) -> None:
    page, seen = site / "index.html", []
    while page not in seen:
        seen.append(page)
        link = NEXT.search(page.read_text(encoding="utf-8"))
        page = (page.parent / link[1]).resolve() if link else page
    assert {path.relative_to(site).as_posix() for path in seen} >= {html_of(name) for name in PAGES}


def test_a_hit_in_a_decision_or_the_changelog_counts_less_than_one_in_a_text_elsewhere(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    heading = 1000  # the theme's weight of a heading beside that of a text
    for document in index["docs"]:
        if document["location"].startswith(("adr/", "repository/")):
            assert document["boost"] * heading < 1, document["location"]


def test_the_search_index_can_be_read_without_a_server(site: Path) -> None:
    assert (site / "search/search_index.js").read_text(encoding="utf-8").startswith("var __index = {")


def test_a_screenshot_is_shown_in_the_colours_of_the_page(site: Path) -> None:
    page = (site / "dashboard.html").read_text(encoding="utf-8")
    light = re.findall(r'src="images/([\w-]+)\.png#only-light"', page)
    assert light
    assert re.findall(r'src="images/dark/([\w-]+)\.png#only-dark"', page) == light
    assert all((site / f"images/dark/{name}.png").is_file() for name in light)
    assert (
        'src="../images/dark/dashboard-timeline.png#only-dark"'
        in (site / "repository/index.html").read_text()
    )


def test_files_outside_of_docs_are_taken_along_with_what_they_link_to(small: Path, tmp_path: Path) -> None:
    made = make_site(small, tmp_path / "site")
    assert 'href="repository/index.html"' in (made / "index.html").read_text()
    assert 'href="repository/MORE.html#more---and-more"' in (made / "index.html").read_text()
    assert 'href="../index.html"' in (made / "repository/index.html").read_text()
    assert (made / "repository/MORE.html").is_file()


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("[nowhere](no-such.md)", id="a link to a page that is not there"),
        pytest.param("[nowhere](../NO-SUCH.md)", id="a link to a file outside that is not there"),
        pytest.param("[nowhere](#no-such-heading)", id="a link to a heading that is not there"),
        pytest.param("[nowhere](../MORE.md#no-such)", id="a heading that the file outside has not"),
    ],
)
def test_a_wrong_link_fails_the_build(small: Path, tmp_path: Path, wrong: str) -> None:
    (small / "docs/index.md").write_text(f"# Home\n\n[more](../MORE.md)\n\n{wrong}\n")
    with pytest.raises(Abort, match="strict mode"):
        make_site(small, tmp_path / "site")


def test_a_page_that_nobody_can_find_fails_the_build(small: Path, tmp_path: Path) -> None:
    (small / "docs/forgotten.md").write_text("# Forgotten\n")
    with pytest.raises(Abort, match="strict mode"):
        make_site(small, tmp_path / "site")


def test_a_diagram_that_is_not_drawn_fails_the_build(
    small: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (small / "docs/index.md").write_text("# Home\n\n```mermaid\nflowchart LR\n  a --> b\n```\n")
    with pytest.raises(Abort):
        make_site(small, tmp_path / "site")
    assert "index.md: a mermaid diagram is new or changed: run `make diagrams`" in caplog.text


def test_a_decision_without_number_or_state_fails_the_build(small: Path, tmp_path: Path) -> None:
    (small / "docs/adr").mkdir()
    (small / "docs/adr/0001-x.md").write_text("# No number\n")
    with pytest.raises(ValueError, match=r"adr/0001-x\.md: begin with '# NUMBER\. TITLE'"):
        make_site(small, tmp_path / "site")
