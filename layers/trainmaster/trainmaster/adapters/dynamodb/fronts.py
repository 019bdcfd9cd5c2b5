"""Keep the row where passes note what they considered and left out: one a pool, never in a transaction."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import value
from trainmaster.adapters.dynamodb.calls import Rows, key_attributes
from trainmaster.adapters.dynamodb.codec import iso
from trainmaster.core.monitoring.queue_front_looks import Front, Look, Unseen


class DynamoFronts:
    """Implements FrontRegister."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._rows = Rows(client, table=table)

    def front(self, pool: str) -> Front:
        row = self._rows.get(layout.front_key(pool)) or {}
        return Front(look=_look(row.get("look")), unseen=_unseen(row.get("unseen")))

    def note_look(self, pool: str, look: Look) -> None:
        self._set(pool, "look", {"at": iso(look.at), "first": list(look.first)})

    def note_unseen(self, pool: str, unseen: Unseen | None) -> None:
        stored = None if unseen is None else asdict(unseen) | {"since": iso(unseen.since)}
        self._set(pool, "unseen", stored)

    def _set(self, pool: str, attribute: str, content: Mapping[str, Any] | None) -> None:
        self._rows.change(
            "update_item",
            Key=key_attributes(layout.front_key(pool)),
            UpdateExpression="SET #it = :new",
            ExpressionAttributeNames={"#it": attribute},
            ExpressionAttributeValues={":new": value(content)},
        )


def _look(stored: Mapping[str, Any] | None) -> Look | None:
    if stored is None:
        return None
    return Look(at=datetime.fromisoformat(stored["at"]), first=tuple(stored["first"]))


def _unseen(stored: Mapping[str, Any] | None) -> Unseen | None:
    if stored is None:
        return None
    return Unseen(name=stored["name"], since=datetime.fromisoformat(stored["since"]))
