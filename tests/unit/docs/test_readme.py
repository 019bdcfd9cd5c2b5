"""README's first screen: ``queue`` and ``why`` as they print a recorded twin; figures that are measured."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from typing import Any

import pytest
from trainmaster_client.cli import jobs, main, queue
from trainmaster_client.cli.connection import CommandApi

from tests.markdown import ROOT, blocks, table, text_of
from tests.readme_twin import RECORDED, WAITS

README = text_of("README.md")
LONGEST = 135
"""Lines; what is more belongs to a page."""
Print = Callable[..., str]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Print]:
    """The command's output, with the API's answers and the instant of the recording."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    now = datetime.fromisoformat(recorded["now"])

    class RecordedApi(CommandApi):
        def __init__(self) -> None:
            """No URL, no credentials."""

        def _call(self, method: str, path: str, *_: object, **__: object) -> Any:
            assert method == "GET"
            return recorded["answers"][path.partition("?")[0]]

    class AtThatInstant(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return now.astimezone(tz)

    for module in (queue, jobs):
        monkeypatch.setattr(module, "connect", lambda **_: RecordedApi())
        monkeypatch.setattr(module, "datetime", AtThatInstant)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "80")
    time.tzset()

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["trainmaster", *words])
        with pytest.raises(SystemExit) as exited:
            main()
        assert not exited.value.code
        return capsys.readouterr().out

    yield run
    monkeypatch.undo()
    time.tzset()


def test_the_queue_and_the_reason_that_are_shown_are_what_the_commands_print(printed: Print) -> None:
    shown = "\n".join(block.text for block in blocks(README, ""))
    for words in (("queue",), ("why", WAITS)):
        lines = "".join(f"{line.rstrip()}\n" for line in printed(*words).splitlines())
        assert f"$ trainmaster {' '.join(words)}\n{lines}" in shown, lines
        assert max(map(len, lines.splitlines())) <= 80


def test_the_first_screen_comes_first_and_the_rest_is_on_pages() -> None:
    order = [
        "```diff",
        "$ trainmaster queue",
        "$ trainmaster why",
        "preemptions waste",
        "![",
        "\nmake demo\n",
    ]
    places = [README.index(mark) for mark in order]
    assert places == sorted(places)
    assert len(README.splitlines()) <= LONGEST


def test_the_figures_are_those_of_the_measured_table() -> None:
    head = ("measured", "plain queue", "default policy", "ratio", "with `order.shortest_first`")
    ratios = {row[0]: (row[3], row[4]) for row in table(text_of("docs/benchmarks.md"), *head)}

    def less(figure: str, column: int = 0) -> int:
        return round(100 * (1 - float(ratios[figure][column])))

    assert f"**{less('waste, GPU-hours')} % less** GPU time" in README
    assert f"**{less('weighted delay, hours')} % shorter**" in README
    assert f"**{less('weighted delay, hours', 1)} % shorter** with `order.shortest_first`" in README
    assert f"**{less('start-up, GPU-hours')} % less**" in README


def test_the_running_cost_is_that_of_the_page() -> None:
    page = text_of("docs/guides/cost.md")
    assert "about 19 USD a month" in README
    assert "about 19 USD a month" in page
    (million,) = (row for row in table(page, "", "USD") if row[0] == "a million jobs")
    assert f"{round(float(million[1]))} USD for a million jobs" in README


def test_install_facts_are_to_be_found() -> None:
    for fact in ("Linux", "Python 3.11", "GB of disk", "make demo", "make test", "real AWS account"):
        assert fact in README
    assert (ROOT / "LICENSE").is_file()
