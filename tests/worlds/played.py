"""What came of a scenario: facts, and checks that can be recomputed from them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Played:
    facts: dict[str, Any]
    checks: list[dict[str, Any]] = field(default_factory=list)

    def check(self, what: str, *, expected: Any, actual: Any, ok: bool | None = None) -> None:
        passed = expected == actual if ok is None else ok
        self.checks.append({"what": what, "expected": expected, "actual": actual, "ok": passed})

    def at_most(self, what: str, most: float, actual: float) -> None:
        self.check(what, expected=f"<= {most}", actual=actual, ok=actual <= most)

    def nothing_killed(self) -> None:
        by_function = {name: one["killed"] for name, one in self.facts["invocations"].items()}
        self.check(
            "no invocation is killed", expected=0, actual=by_function, ok=not any(by_function.values())
        )
        lost = {name: one["dead_letters"] for name, one in self.facts["invocations"].items()}
        self.check("no event or message is lost", expected=0, actual=lost, ok=not any(lost.values()))

    def one_create_each(self, jobs: int) -> None:
        created = self.facts["created"]
        self.check("one accepted Create for each job", expected=jobs, actual=created["accepted"])
        self.check("every job has its first attempt", expected=jobs, actual=created["first attempts"])
