"""Pages that show commands and what they print: the commands are run, and what they print is compared.

A block of shell with a block without a language right below it is a transcript. What differs from run to run
is left out of the comparison: instants, durations, amounts, the bars of a timeline. A line of three dots in
the page stands for any lines, three dots at the end of a line for the rest of it.
"""

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests import shell

PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 1.0
_STEP = re.compile(r"^```bash\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_VARIES = (
    (re.compile(r"^ +\d+ \|.*$", re.MULTILINE), "| bar |"),
    (re.compile(r"^[ \d:]+$", re.MULTILINE), ""),
    (re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?"), "INSTANT"),
    (re.compile(r"\b([A-Z][a-z]{2} \d\d? [A-Z][a-z]{2} )?\d\d:\d\d(:\d\d)?\b"), "INSTANT"),
    (re.compile(r"\b(\d+[dhms])+\b"), "SPAN"),
    (re.compile(r"\b\d+\.\d+\b"), "AMOUNT"),
    (re.compile(r"\b\d+ %"), "SHARE"),
    (re.compile(r"^ +([a-z][a-z -]* AMOUNT(, |$))+$", re.MULTILINE), "AMOUNTS BY CAUSE"),
    (re.compile(r"-r\d+-[0-9a-f]{6}\b"), "-rN"),
    (re.compile(r"\bstep=\d+"), "step=N"),
    (re.compile(r": [^:\n]*…$", re.MULTILINE), ": …"),
    (re.compile(r"[ \n]+"), " "),
)
_READS = frozenset({"queue", "why", "show", "history", "usage", "timeline", "logs", "pools", "events"})
_LEFT_OUT = re.compile(r"^ *\.\.\.$\n?|(?<=.)\.\.\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A block of shell."""

    text: str
    printed: str | None
    """None where the page does not show it."""

    @property
    def commands(self) -> list[list[str]]:
        return list(shell.lines(self.text))

    @property
    def reads(self) -> bool:
        """May be run again until it prints what the page shows."""
        return all(
            words[0] == "trainmaster" and (words[1] in _READS or words[1:3] == ["policy", "diff"])
            for words in self.commands
        )


def steps(text: str) -> Iterator[Step]:
    """The blocks of shell of a page, in their order."""
    for found in _STEP.finditer(text):
        yield Step(text=found[1], printed=found[2])


def play(step: Step, *, folder: Path, env: Mapping[str, str]) -> str:
    """What the step printed; it printed what the page shows, and ended well."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        done = subprocess.run(
            ["bash", "-ec", step.text],
            cwd=folder,
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{step.text}{done.stdout}"
        if step.printed is None or is_as(step.printed, done.stdout):
            return done.stdout
        in_time = step.reads and time.monotonic() < deadline
        assert in_time, f"{step.text}printed\n{done.stdout}\nand the page shows\n{step.printed}"
        time.sleep(_POLL_SECONDS)


def is_as(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for what varies and what it leaves out."""
    parts = [re.escape(_fixed(part).strip()) for part in _LEFT_OUT.split(shown)]
    return re.fullmatch(r"\s*" + r".*?".join(parts) + r"\s*", _fixed(printed), re.DOTALL) is not None


def _fixed(text: str) -> str:
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return text
