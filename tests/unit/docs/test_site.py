"""The site is built from the documents, strictly, and shows what a git host shows."""

import re
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tests.markdown import ROOT

PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
SHOWN = ("h2", "h3", "ul", "ol", "li", "table", "tr", "td", "pre", "code", "strong", "em")
BODY = re.compile(r'itemprop="articleBody">(.*?)<footer', re.DOTALL)


def make_site(checkout: Path, target: Path) -> Path:
    build(load_config(str(checkout / "mkdocs.yml"), site_dir=str(target)))
    return target


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(ROOT, tmp_path_factory.mktemp("site"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of two pages, with the configuration of this one."""
    (tmp_path / "docs").mkdir()
    for name in ("site_links.py", "site.css"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    (tmp_path / "README.md").write_text("# Readme\n\n[home](docs/index.md) [more](MORE.md)\n")
    (tmp_path / "MORE.md").write_text("# More - and more\n")
    (tmp_path / "docs/index.md").write_text(
        "# Home\n\n[read](../README.md) [more](../MORE.md#more---and-more)\n"
    )
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[0]
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\nnav:\n  - index.md\n")
    return tmp_path


def shown(html: str) -> dict[str, int]:
    return {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in SHOWN}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site_has_the_same_parts_as_on_a_git_host(site: Path, name: str) -> None:
    path = Path(name)
    page = site / path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html")
    body = BODY.search(page.read_text(encoding="utf-8"))
    assert body is not None
    there = MarkdownIt("gfm-like", {"linkify": False}).render(
        (ROOT / "docs" / name).read_text(encoding="utf-8")
    )
    assert shown(body[1]) == shown(there)


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
