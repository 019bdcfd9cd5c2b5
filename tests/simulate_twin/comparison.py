"""How far the starts of a replay are from those of the twin: pure, and recomputable from the two lists."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.simulate_twin.recorded_starts import Start

TOLERANCE_S = 60.0
LEAST_SHARE = 0.95
_WORST = 8
"""Deviations that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    job: str
    attempt: int
    twin_s: float | None
    """None: it never started."""
    replay_s: float | None

    @property
    def seconds(self) -> float | None:
        """None: it started in one of the two alone."""
        return None if self.twin_s is None or self.replay_s is None else self.replay_s - self.twin_s

    @property
    def is_close(self) -> bool:
        return self.seconds is not None and abs(self.seconds) <= TOLERANCE_S

    def as_json(self) -> dict[str, Any]:
        return {"job": self.job, "attempt": self.attempt, "twin_s": self.twin_s, "replay_s": self.replay_s}


def deviations(twin: Iterable[Start], replay: Iterable[Start]) -> list[Deviation]:
    """Of every attempt that either had, in the order of its start."""
    of_twin = {(one.job, one.attempt): one.second for one in twin}
    of_replay = {(one.job, one.attempt): one.second for one in replay}
    found = [
        Deviation(
            job=job,
            attempt=attempt,
            twin_s=of_twin.get((job, attempt)),
            replay_s=of_replay.get((job, attempt)),
        )
        for job, attempt in of_twin.keys() | of_replay.keys()
    ]
    return sorted(found, key=lambda one: (min(_seconds(one)), one.job, one.attempt))


def _seconds(one: Deviation) -> list[float]:
    return [second for second in (one.twin_s, one.replay_s) if second is not None]


def share_close(found: Collection[Deviation]) -> float:
    """Of nothing it is nothing: where no job started nothing is shown."""
    return sum(one.is_close for one in found) / len(found) if found else 0.0


def worst(found: Iterable[Deviation]) -> list[Deviation]:
    """Those that are not close: attempts that only one of the two has first, then the farthest."""
    far = [one for one in found if not one.is_close]
    return sorted(far, key=lambda one: (one.seconds is not None, -abs(one.seconds or 0)))[:_WORST]


def guess(one: Deviation, found: Iterable[Deviation], course: Mapping[str, str]) -> str:
    """Why, as far as can be told: the first that deviates usually takes those behind it along.

    ``course``: by job, what befell it in the twin.
    """
    own = course.get(one.job)
    earlier = [other for other in found if not other.is_close and min(_seconds(other)) < min(_seconds(one))]
    before = f"{len(earlier)} others deviate before it" if earlier else "the first that deviates"
    return f"{own}; {before}" if own else before


def line_of(one: Deviation, why: str) -> str:
    times = ", ".join(
        f"{who} {'never' if second is None else f'at {second:.0f} s'}"
        for who, second in (("twin", one.twin_s), ("replay", one.replay_s))
    )
    apart = "" if one.seconds is None else f" ({one.seconds:+.0f} s)"
    return f"{one.job} attempt {one.attempt}: {times}{apart}: {why}"
