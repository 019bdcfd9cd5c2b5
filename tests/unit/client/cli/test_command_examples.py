"""Every command's help ends with examples, and each is a line that the command takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from trainmaster_client.cli.app import app
from trainmaster_client.cli.command_examples import EXAMPLES
from typer.testing import CliRunner

from tests import shell

WIDEST = 80
PARSED_ELSEWHERE = frozenset({"local up"})
"""Its help is that of the twin."""


def leaves(command: Any, *words: str) -> Iterator[str]:
    for name, one in getattr(command, "commands", {}).items():
        if hasattr(one, "commands"):
            yield from leaves(one, *words, name)
        else:
            yield " ".join([*words, name])


def test_every_command_has_examples_and_only_those() -> None:
    assert set(EXAMPLES) == set(leaves(typer.main.get_command(app))) - PARSED_ELSEWHERE


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_line_that_the_command_takes(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("job.json", "policy.yaml", "table.csv"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    (words,) = shell.lines(line)
    shell.check(words)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_shows_them_and_fits_eighty_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDEST))
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).output
    examples = "".join(f"    {line}\n" for line in EXAMPLES[name])
    assert f"Examples:\n{examples}" in shown
    assert max(map(len, shown.splitlines())) <= WIDEST
