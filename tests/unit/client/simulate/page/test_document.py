import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from trainmaster_client.simulate.comparison.comparisons import Comparison, compare
from trainmaster_client.simulate.page.document import PageFacts, page

from tests.unit.client.simulate.hand_made import attempt, history, job, replay, two_policies

FACTS = PageFacts(
    command="trainmaster simulate --trace x.csv --policy policy.yaml",
    lead=["Pools as they are."],
    assumed=["A start takes 4 minutes."],
    not_modelled=["Users are as they were."],
)
HOSTILE = """</title><script>alert(1)</script><img src=x onerror=alert(1)>"'&\x1b[31m"""


class Reader(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(comparison: Comparison) -> tuple[str, Reader]:
    text = page(comparison, FACTS)
    reader = Reader()
    reader.feed(text)
    return text, reader


def hostile() -> Comparison:
    jobs = history(
        job(f"{HOSTILE}-a", f"{HOSTILE}-team", priority=0), job(f"{HOSTILE}-b", f"{HOSTILE}-other", at=60)
    )
    base = replay(
        f"{HOSTILE}-base",
        attempt(f"{HOSTILE}-a", 0, 240, 600, end="preempted", lost_s=100, preempted_by=f"{HOSTILE}-b"),
        attempt(f"{HOSTILE}-b", 600, 840, 4440),
        attempt(f"{HOSTILE}-a", 4440, 4680, 8280, attempt=1),
        notes=[HOSTILE],
    )
    other = replay(f"{HOSTILE}-new", attempt(f"{HOSTILE}-a", 0, 240, 3840), refused={f"{HOSTILE}-b": HOSTILE})
    return compare(jobs, [base, other])


def test_names_are_text_wherever_they_stand() -> None:
    text, reader = read(hostile())
    assert {"script", "img"}.isdisjoint(reader.tags)
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    assert "alert(1)" in reader.text
    assert "\x1b" not in text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text, reader = read(two_policies())
    assert {"script", "link", "iframe", "img"}.isdisjoint(reader.tags)
    assert {"src", "xlink:href"}.isdisjoint(name for name, _ in reader.attributes)
    assert all(value and value.startswith("#") for name, value in reader.attributes if name == "href")
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_title_says_what_was_found() -> None:
    _, reader = read(two_policies())
    assert (
        "Under policy.yaml half of the jobs start within 1.6h instead of 2m under a plain queue, "
        "at 14 % less cost" in reader.text
    )


def test_every_picture_has_words_and_a_table_beside_it() -> None:
    text, reader = read(two_policies())
    assert reader.tags.count("svg") >= 5
    described = re.findall(r'<svg [^>]*role="img" aria-label="[^"]+"', text)
    assert len(described) == reader.tags.count("svg")
    for caption in ("Waits by team", "Waiting jobs, daily means", "What was paid for", "Cost by team"):
        assert caption in reader.text
    assert reader.tags.count("caption") == reader.tags.count("table")


def test_what_the_simulator_does_not_know_is_on_the_page() -> None:
    comparison = two_policies()
    told = replace(comparison, history=replace(comparison.history, not_known=("Priorities are drawn.",)))
    _, reader = read(told)
    for sentence in ("Priorities are drawn.", *FACTS.assumed, *FACTS.not_modelled, *FACTS.lead):
        assert sentence in reader.text


def test_jobs_that_never_started_are_on_the_page() -> None:
    jobs = history(job("a"), job("b", at=10), job("c", at=20))
    before = replay("before", *(attempt(name, 100, 200, 3800) for name in "abc"))
    after = replay("after", attempt("a", 0, 200, 3800), refused={"c": "no pool has ml.x"})
    _, reader = read(compare(jobs, [before, after]))
    assert "1 job still waited at the end" in reader.text
    assert "no pool has ml.x" in reader.text
    assert "1 job started under before and never under after" in reader.text


@pytest.mark.parametrize(
    "comparison",
    [
        pytest.param(compare(history(job("a")), [replay("p"), replay("q")]), id="nothing ever ran"),
        pytest.param(
            compare(
                history(job("a")),
                [replay("p", attempt("a", 0, 0, 10), instances=0), replay("q", instances=0)],
            ),
            id="the capacity is not known",
        ),
        pytest.param(
            compare(history(job("a")), [replay(f"p{n}", attempt("a", n, n, 99)) for n in range(8)]),
            id="more columns than colours",
        ),
    ],
)
def test_every_comparison_has_a_page(comparison: Comparison) -> None:
    text, _ = read(comparison)
    assert text.startswith("<!DOCTYPE html>")


def test_a_large_history_makes_no_large_page() -> None:
    """Thousands of jobs of a hundred teams: pictures are bounded, and so are tables."""
    jobs = [job(f"job-{n:05}", f"team-{n % 100:02}", at=60 * n) for n in range(4000)]
    found = [
        replay(
            label,
            *(
                attempt(one.name, 60 * n + late, 60 * n + late + 240, 60 * n + 4000)
                for n, one in enumerate(jobs)
            ),
            instances=80,
        )
        for label, late in (("p", 10), ("q", 200))
    ]
    text, _ = read(compare(history(*jobs), found))
    assert len(text) < 1_500_000
