"""Colours of columns and teams: the same everywhere on a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster_client.simulate.comparison.comparisons import Comparison
from trainmaster_client.simulate.page.curves import legend
from trainmaster_client.simulate.page.markup import Node

MOST_COLORED_TEAMS = 7
COLUMN_CLASSES = ("c0", "c1", "c2", "c3", "c4", "c5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours: the same everywhere on the page."""

    columns: Sequence[tuple[str, str]]
    """Class and label of each."""
    teams: Mapping[str, str]
    """Class by team, of those that use most."""

    @classmethod
    def of(cls, comparison: Comparison) -> "Look":
        used = {team: sum(values) for team, values in comparison.base.curves.used_by_team.items()}
        most = sorted(used, key=lambda team: (-used[team], team))[:MOST_COLORED_TEAMS]
        return cls(
            columns=[
                (COLUMN_CLASSES[number % len(COLUMN_CLASSES)], column.label)
                for number, column in enumerate(comparison.columns)
            ],
            teams={team: f"t{number}" for number, team in enumerate(most)},
        )

    def of_column(self, label: str) -> str:
        return next(class_ for class_, name in self.columns if name == label)

    def team_legend(self, teams: int) -> Node:
        others = [("t-others", "other teams")] if teams > len(self.teams) else []
        return legend([*((class_, team) for team, class_ in self.teams.items()), *others])
