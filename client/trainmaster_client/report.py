"""The report that every demo, benchmark and test runner writes: what was checked, and the facts behind it."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "trainmaster.report/1"
_GIT_TIMEOUT_S = 30.0
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    id: str
    ok: bool | None
    """Whether the check passed; None if it was skipped, which never counts as passed."""
    expected: Any
    actual: Any
    skipped: str | None = None
    """Reason for skipping the check."""

    def as_json(self) -> dict[str, Any]:
        document = {"id": self.id, "ok": self.ok, "expected": self.expected, "actual": self.actual}
        return document if self.skipped is None else document | {"skipped": self.skipped}

    def line(self) -> str:
        if self.skipped is not None:
            return f"skip  {self.id}: {self.skipped}"
        if self.ok:
            return f"ok    {self.id}: {self.actual}"
        return f"FAIL  {self.id}: expected {self.expected}, found {self.actual}"


@dataclass(slots=True)
class Report:
    """Collects checks and facts from when it is made; ``facts`` hold what happened, not what was expected."""

    name: str
    argv: Sequence[str] = field(default_factory=lambda: tuple(sys.argv))
    checks: list[Check] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def check(self, check_id: str, *, expected: Any, actual: Any, ok: bool | None = None) -> bool:  # noqa: ANN401
        """Note one check; without ``ok`` it passes when both are equal. True when it passed."""
        passed = expected == actual if ok is None else ok
        self.checks.append(Check(id=check_id, ok=passed, expected=expected, actual=actual))
        return passed

    def skip(self, check_id: str, *, reason: str, expected: Any = None) -> None:  # noqa: ANN401
        self.checks.append(Check(id=check_id, ok=None, expected=expected, actual=None, skipped=reason))

    @property
    def ok(self) -> bool:
        outcomes = [check.ok for check in self.checks]
        return True in outcomes and False not in outcomes

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "name": self.name,
            "commit": _git("rev-parse", "HEAD"),
            "dirty": bool(_git("status", "--porcelain")),
            "argv": list(self.argv),
            "seconds": round(time.monotonic() - self._since, 3),
            "ok": self.ok,
            "checks": [check.as_json() for check in self.checks],
            "facts": self.facts,
        }

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n", encoding="utf-8")

    def finish(self, path: Path) -> int:
        """Print each check, write the report, give the exit code: 0 means ok."""
        for check in self.checks:
            print(check.line())
        self.write(path)
        print(f"{self.name}: {'ok' if self.ok else 'NOT ok'}, report in {path}")
        return 0 if self.ok else 1


def _git(*arguments: str) -> str | None:
    """Run git in the checkout; None outside of one. A checkout that a wheel happens to lie in is not ours."""
    root = _PACKAGE.parents[1]
    if (_PACKAGE / "_checkout").is_dir() or not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
