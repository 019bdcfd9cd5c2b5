"""``python -m tests.second_try PYTEST_ARGUMENTS``: plays tests, and once more, alone, those that failed.

Long tests wait for processes and clocks: a busy machine fails one now and then, and hardly the same one
twice. A test that fails twice has failed. Both outcomes are printed. Failures in more than ``MOST_AGAIN``
modules are no accident, and are not tried again.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

CACHE = Path("build/second-try")
"""What pytest remembers between the two runs; a developer's ``--lf`` knows nothing of it."""
FAILED = Path("v/cache/lastfailed")
"""Below pytest's cache: the ids of the tests that failed, as keys of a JSON object."""
MOST_AGAIN = 6
"""Modules with failures that are tried again."""
SECONDS_AGAIN = 900
"""Most seconds that the second try may take, so that CI ends in its time."""

Play = Callable[..., int]


def play(*arguments: str, timeout: float | None = None) -> int:
    """Run pytest with its memory in ``CACHE``; too slow is as good as failed."""
    command = (sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}", *arguments)
    try:
        return subprocess.run(command, check=False, timeout=timeout).returncode
    except subprocess.TimeoutExpired:
        return pytest.ExitCode.TESTS_FAILED


def failed_tests(cache: Path) -> list[str]:
    """Read which tests failed in the last run."""
    file = cache / FAILED
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def main(arguments: Sequence[str], *, play: Play = play, cache: Path = CACHE) -> int:
    """Play the tests, then the failed ones again; return the exit code of the one or the other."""
    (cache / FAILED).unlink(missing_ok=True)
    first = play(*arguments)
    failed = failed_tests(cache)
    if first != pytest.ExitCode.TESTS_FAILED or not failed:
        return first  # all passed, or pytest itself did not end as it should
    print(f"first try: {_listed('failed', failed)}", flush=True)
    modules = {nodeid.partition("::")[0] for nodeid in failed}
    if len(modules) > MOST_AGAIN:
        print(f"second try: none, as {len(modules)} modules have failures and {MOST_AGAIN} may", flush=True)
        return first
    second = play("-m", "", "-v", *failed, timeout=SECONDS_AGAIN)
    still = failed_tests(cache)
    print(f"first try:  {_listed('failed', failed)}")
    print(f"second try: {'all of them passed' if second == pytest.ExitCode.OK else _listed('failed', still)}")
    return second


def _listed(outcome: str, tests: Sequence[str]) -> str:
    return "\n  ".join((f"{len(tests)} {outcome}", *tests))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
