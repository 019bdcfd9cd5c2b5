"""The page of the articles: what it calls here is here, and each figure of ours stands where it points to."""

import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.markdown import ROOT, anchors, codes, links, table, text_of

PAGE = text_of("docs/sources.md")
ITEMS_HEAD = "| item | here | where | shown by |"
FIGURES_HEAD = "| figure | article | here | measured by |"
VERDICTS = ("yes", "partly", "no")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
WITHOUT_A_COUNT = 3
"""Words that a reason has at least; fewer explain nothing."""


class Row(NamedTuple):
    section: str
    name: str
    second: str
    third: str
    fourth: str


def rows(head: str) -> list[Row]:
    """List the rows below each table with this head, with the heading of the section that it stands in."""
    section, inside, found = "", False, []
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        inside = line == head or (inside and line.startswith("|"))
        if inside and line != head and not line.startswith("|---"):
            name, second, third, fourth = (cell.strip() for cell in line.split("|")[1:-1])
            found.append(Row(section, name, second, third, fourth))
    return found


ITEMS, FIGURES = rows(ITEMS_HEAD), rows(FIGURES_HEAD)
HERE = [row for row in ITEMS if row.second != "no"]
NOT_HERE = [row for row in ITEMS if row.second == "no"]


def ids(row: Row) -> str:
    return f"{row.section}: {row.name}"


def target(link: str) -> tuple[str, str]:
    """Return a link's page from the root, and its anchor."""
    page, _, anchor = link.partition("#")
    return f"docs/{page}", anchor


def is_file(code: str) -> bool:
    return "/" in code and " " not in code and (ROOT / code).is_file()


def leads_somewhere(link: str) -> bool:
    if link.startswith("https://"):
        return True
    page, anchor = target(link)
    return (ROOT / page).is_file() and (not anchor or anchor in anchors(text_of(page)))


def test_the_page_has_rows_of_both_kinds_and_each_says_whether_it_is_here() -> None:
    assert len(ITEMS) > 90
    assert len(FIGURES) > 20
    assert [ids(row) for row in ITEMS if row.second not in VERDICTS] == []


def test_the_table_at_the_top_counts_the_rows() -> None:
    counts = Counter((row.section, row.second) for row in ITEMS)
    told = {links(row[0])[0]: row[1:] for row in table(PAGE, "article", *VERDICTS)}
    sections = list(dict.fromkeys(row.section for row in ITEMS))
    assert told == {
        f"#{section.lower().replace(' ', '-')}": [str(counts[section, verdict]) for verdict in VERDICTS]
        for section in sections
    }


@pytest.mark.parametrize("row", HERE, ids=ids)
def test_what_is_here_was_shown_by_a_file_or_a_page_that_exists(row: Row) -> None:
    files, pages = codes(row.fourth), links(row.fourth)
    assert files or pages
    assert [name for name in files if not is_file(name)] == []
    assert [link for link in pages if not leads_somewhere(link)] == []


@pytest.mark.parametrize("row", HERE, ids=ids)
def test_what_is_here_says_where(row: Row) -> None:
    """Commands are held by ``test_docs``, which runs over every document."""
    assert codes(row.third) or links(row.third), row.third
    assert [link for link in links(row.third) if not leads_somewhere(link)] == []
    paths = [code for code in codes(row.third) if re.search(r"/.*\.\w+$", code) and " " not in code]
    assert [path for path in paths if not is_file(path)] == []


@pytest.mark.parametrize("row", NOT_HERE, ids=ids)
def test_what_is_not_here_says_why(row: Row) -> None:
    assert len(row.third.split()) > WITHOUT_A_COUNT
    assert row.fourth == ""


@pytest.mark.parametrize("row", FIGURES, ids=ids)
def test_a_figure_of_ours_stands_on_the_page_that_it_names(row: Row) -> None:
    if not row.fourth:
        assert row.third.startswith("not "), "a figure without a report"
        assert not NUMBER.search(row.third)
        return
    (link,) = links(row.fourth)
    assert leads_somewhere(link)
    page, _ = target(link)
    stated = set(NUMBER.findall(re.sub(r"`[^`]*`", "", row.third)))
    missing = stated - set(NUMBER.findall(text_of(page)))
    assert missing == set(), f"not in {page}"


def test_every_article_has_its_address() -> None:
    parts = PAGE.split("\n## ")[1:]
    assert [part.splitlines()[0] for part in parts if "](https://" not in part] == []
