"""Medians of lengths by team, for jobs of which nothing is known."""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True, kw_only=True)
class TypicalLengths:
    """Medians, by team and of all."""

    by_team: dict[str, timedelta]
    of_all: timedelta | None

    @classmethod
    def of(cls, lengths: Iterable[tuple[str, timedelta | None]]) -> "TypicalLengths":
        teams: defaultdict[str, list[timedelta]] = defaultdict(list)
        for team, value in lengths:
            if value is not None:
                teams[team].append(value)
        every = list(itertools.chain.from_iterable(teams.values()))
        return cls(
            by_team={team: statistics.median_high(values) for team, values in teams.items()},
            of_all=statistics.median_high(every) if every else None,
        )

    def value(self, team: str, usual: timedelta) -> timedelta:
        return self.by_team.get(team) or self.of_all or usual
