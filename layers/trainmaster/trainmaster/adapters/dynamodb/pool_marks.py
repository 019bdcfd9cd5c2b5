"""Write marks that passes leave in a pool's counters, one attribute and one write each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes, value
from trainmaster.adapters.dynamodb.calls import key_attributes
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.adapters.dynamodb.guard import GuardedReads
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.planning.refusal_records import AccountLimit


class PoolMarks(GuardedReads):
    """Implements a part of ``JobStore``."""

    def tell_policy(self, pool: str, version: int) -> None:
        self._rows.change(
            "update_item",
            Key=key_attributes(layout.counters_key(pool)),
            UpdateExpression="SET policy_version = :v",
            ConditionExpression="attribute_not_exists(policy_version) OR policy_version < :v",
            ExpressionAttributeValues={":v": value(version)},
        )

    def change_chain(self, pool: str, before: datetime | None, after: datetime | None) -> bool:
        """Write the end of a chain.

        A stored value of another type than a number is unreadable, and is replaced.
        """
        unchanged: tuple[str, Mapping[str, object]] = ("#it = :old", {":old": _ms(before)})
        if before is None:
            unchanged = ("attribute_not_exists(#it) OR NOT attribute_type(#it, :number)", {":number": "N"})
        condition, values = unchanged
        return self._rows.change(
            "update_item",
            Key=key_attributes(layout.counters_key(pool)),
            UpdateExpression="REMOVE #it" if after is None else "SET #it = :new",
            ConditionExpression=condition,
            ExpressionAttributeNames={"#it": layout.GOES_ON_UNTIL},
            ExpressionAttributeValues=to_attributes(
                {**values, **({} if after is None else {":new": _ms(after)})}
            ),
        )

    def count_missed_warm_pool(self, pool: str, *, missed: bool) -> int:
        key = layout.counters_key(pool)
        before = int((self._rows.get(key) or {}).get(layout.MISSED_WARM_POOLS, 0))
        count = before + 1 if missed else 0
        if count != before:
            self._note(key, layout.MISSED_WARM_POOLS, count or None)
        return count

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """Store a limit of the account; the last writer wins, as concurrent passes learn the same."""
        learned = None if limit is None else encode(limit)
        self._note(layout.counters_key(pool), layout.account_limit(capacity), learned)

    def ranked(self, pool: str, order_key: str) -> None:
        self._note(layout.counters_key(pool), layout.ORDER_KEY, order_key)

    def _note(self, key: layout.Key, attribute: str, content: object) -> None:
        """Set one attribute; None removes it."""
        noted: dict[str, Any] = (
            {} if content is None else {"ExpressionAttributeValues": {":new": value(content)}}
        )
        self._rows.change(
            "update_item",
            Key=key_attributes(key),
            UpdateExpression="REMOVE #it" if content is None else "SET #it = :new",
            ExpressionAttributeNames={"#it": attribute},
            **noted,
        )


def _ms(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)
