"""``python -m tests.upgrade``: earlier stacks, with jobs in every lasting state, become today's and go back.

The templates are deployed by ``sam deploy`` onto MiniStack: from the oldest commit that can be upgraded, from
the oldest that can be rolled back to without holding who waits, and from the newest release.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Report

from demos.deployed.ministack import PROGRAM
from demos.deployed.sam import SamError
from local.reaper import supervise
from tests.upgrade import commits
from tests.upgrade.checks import check


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade", description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("build/upgrade.json"), help="where the report goes")
    parser.add_argument("--earlier", action="append", metavar="COMMIT", help="upgrade from this one instead")
    arguments = parser.parse_args(argv)
    logging.disable(logging.INFO)
    if not PROGRAM.exists():
        print(f"upgrade: there is no {PROGRAM}; make .venv-ministack/.ready installs it", file=sys.stderr)
        return 2
    return supervise(lambda: _run(arguments.json, arguments.earlier, argv))


def _run(path: Path, earlier: Sequence[str] | None, argv: Sequence[str]) -> int:
    report = Report("upgrade", argv=("python", "-m", "tests.upgrade", *argv))
    for commit in earlier or _due(report):
        if commits.is_here(commit):
            _try(report, commit)
        else:
            report.skip(commit, reason="the commit is not in this clone; git fetch --unshallow brings it")
    return report.finish(path)


def _due(report: Report) -> list[str]:
    newest = commits.newest_release(commits.tags())
    if newest is None:
        report.skip("newest-release", reason="there is no tag vX.Y.Z yet")
    return [one for one in (commits.EARLIEST, commits.ONE_ORDER, newest) if one is not None]


def _try(report: Report, commit: str) -> None:
    from tests.upgrade.story import play  # noqa: PLC0415  half a second that --help should not cost

    facts = report.facts.setdefault(commit, {})
    try:
        play(commit, lambda line: print(f"{commit}: {line}", flush=True), facts)
    except (SamError, TimeoutError, TrainmasterClientError) as error:
        report.check(f"{commit}-played", expected=None, actual=str(error))
        return
    check(report, commit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
