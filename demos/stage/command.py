"""The common parts of the demos' commands: an option, a story on the terminal, and an orderly end."""

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console
from trainmaster_client.report import Report

from demos.stage.patience import ProgramEndedError, three_lines
from demos.stage.screen import Screen

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The things every story needs: a report, where that goes, a screen, and what its user asked for."""

    report: Report
    path: Path
    """File that the report is written to."""
    screen: Screen = field(default_factory=lambda: Screen(Console(highlight=False)))
    options: argparse.Namespace = field(default_factory=argparse.Namespace)

    def finish(self) -> int:
        """Print the checks, write the report, and give the exit code."""
        self.screen.console.print()
        return self.report.finish(self.path)


def run(
    tell: Callable[[Telling], int],
    description: str | None,
    *,
    report: str,
    options: Callable[[argparse.ArgumentParser], object] = lambda _: None,
) -> int:
    """Read the command line, play, and give the exit code: 0 means ok.

    Args:
        tell: The story.
        description: For ``--help``.
        report: Name of the report, and of its file in ``build`` unless ``--json`` names another.
        options: Adds the demo's own options.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m demos.{Path(sys.argv[0]).stem}", description=description
    )
    parser.add_argument(
        "--json", type=Path, default=Path(f"build/{report}.json"), help="where the report goes"
    )
    options(parser)
    arguments = parser.parse_args()
    return play(tell, Telling(report=Report(name=report), path=arguments.json, options=arguments))


def play(tell: Callable[[Telling], int], telling: Telling) -> int:
    """Tell the story; whatever ends it early is said in three lines, and leaves a report that is not ok."""
    try:
        with _ending_on_sigterm():
            return tell(telling)
    except KeyboardInterrupt:
        print(f"\n{telling.report.name}: stopped; nothing of it is left running.", flush=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the bulkhead: a user of a demo is not to read a traceback
        return _give_up(error, telling)


def _give_up(error: Exception, telling: Telling) -> int:
    details = telling.path.with_suffix(".log")
    details.parent.mkdir(parents=True, exist_ok=True)
    printed = error.printed if isinstance(error, ProgramEndedError) else ""
    details.write_text("".join([*traceback.format_exception(error), "\n", printed]), encoding="utf-8")
    lines = three_lines(telling.report.name, error, reached=telling.screen.reached, details=details)
    telling.report.check("played", expected="the whole story", actual=lines[0], ok=False)
    telling.report.write(telling.path)
    print("\n" + "\n".join(lines), flush=True)
    return 1


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception that unwinds the story, so that nothing it started is left behind."""

    def end(_number: int, _frame: FrameType | None) -> None:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
