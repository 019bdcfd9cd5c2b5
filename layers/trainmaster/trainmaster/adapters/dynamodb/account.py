"""Rows of the whole account, outside of pools and transactions: call rates and counts of teams' reads."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import value
from trainmaster.adapters.dynamodb.calls import Rows, key_attributes
from trainmaster.adapters.dynamodb.codec import iso
from trainmaster.adapters.dynamodb.retention import SUBMISSION_COUNTS, ttl
from trainmaster.adapters.dynamodb.submissions import MINUTE_MS
from trainmaster.core.call_rate import CallRate
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.records import TeamCalls

_LOOKED_UPTO = "looked_upto"
_ALL_TEAMS = "#"
"""Key in place of a team's name; no team can have this name."""
_READS, _CALLS = "reads#", "calls#"
"""Prefixes of the names of teams in rows of counts."""


class DynamoAccount:
    """Implements PaceStore and Rotation."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._rows = Rows(client, table=table)

    def pace(self, operation: str) -> CallRate:
        row = self._rows.get(layout.ACCOUNT_KEY) or {}
        stored = row.get(_pace_of(operation))
        return CallRate() if stored is None else _decoded(stored)

    def change_pace(self, operation: str, before: CallRate, after: CallRate) -> bool:
        values = {":new": value(_encoded(after))}
        condition = "attribute_not_exists(#it)"
        if before != CallRate():
            condition, values[":old"] = "#it = :old", value(_encoded(before))
        return self._set(_pace_of(operation), values, condition)

    def looked_upto(self) -> str | None:
        row = self._rows.get(layout.ACCOUNT_KEY) or {}
        name: str | None = row.get(_LOOKED_UPTO)
        return name

    def note_looked(self, name: str) -> None:
        self._set(_LOOKED_UPTO, {":new": value(name)}, None)

    def _set(self, attribute: str, values: dict[str, Any], condition: str | None) -> bool:
        """Return False if the condition did not hold."""
        only_if = {} if condition is None else {"ConditionExpression": condition}
        return self._rows.change(
            "update_item",
            Key=key_attributes(layout.ACCOUNT_KEY),
            UpdateExpression="SET #it = :new",
            ExpressionAttributeNames={"#it": attribute},
            ExpressionAttributeValues=values,
            **only_if,
        )


class DynamoReadCounts:
    """Implements ReadCountStore with a client of its own, so that no answer waits for a count."""

    def __init__(self, client: Callable[[], Any], *, table: str) -> None:
        self._client = client
        self._table = table

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._client(), table=self._table)

    def add_calls(self, team: str, counted: TeamCalls, *, at: datetime) -> Mapping[str, TeamCalls]:
        """Add the counts to one row for all teams, so that the write also returns which others call.

        The row's size is bounded by the teams of the policy. An earlier release has a row for each team.
        """
        row = self._rows.changed(
            Key=key_attributes(layout.minute_key(UNMANAGED, _ALL_TEAMS, epoch_ms(at) // MINUTE_MS)),
            UpdateExpression="SET #ttl = :ttl ADD #reads :reads, #calls :calls",
            ExpressionAttributeNames={
                "#ttl": "ttl",
                "#reads": f"{_READS}{team}",
                "#calls": f"{_CALLS}{team}",
            },
            ExpressionAttributeValues={
                ":ttl": value(ttl(at, SUBMISSION_COUNTS)),
                ":reads": value(counted.reads),
                ":calls": value(counted.calls),
            },
        )
        teams = [name.removeprefix(_CALLS) for name in row if name.startswith(_CALLS)]
        return {
            name: TeamCalls(reads=int(row[f"{_READS}{name}"]), calls=int(row[f"{_CALLS}{name}"]))
            for name in teams
        }


def _pace_of(operation: str) -> str:
    return f"pace#{operation}"


def _encoded(pace: CallRate) -> dict[str, Any]:
    instants = {"not_before": pace.not_before, "throttled_at": pace.throttled_at}
    stored = {name: iso(at) for name, at in instants.items() if at is not None}
    return {"gap_ms": pace.gap // timedelta(milliseconds=1), **stored}


def _decoded(stored: Mapping[str, Any]) -> CallRate:
    instants = {
        name: datetime.fromisoformat(stored[name]) if name in stored else None
        for name in ("not_before", "throttled_at")
    }
    return CallRate(gap=timedelta(milliseconds=stored["gap_ms"]), **instants)
