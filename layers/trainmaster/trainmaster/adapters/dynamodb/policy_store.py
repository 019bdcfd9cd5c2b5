"""Implement PolicyStore over DynamoDB.

Each pool's counters carry the version, so that a claim decided on an old policy fails. One transaction puts
a policy in force and writes the version to as many pools as it can; the others get it right after that, and a
pool that was missed gets it from its next pass.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.adapters.dynamodb import layout, submissions
from trainmaster.adapters.dynamodb.attribute_values import from_attributes, to_attributes, value
from trainmaster.adapters.dynamodb.calls import MAX_ITEMS, ConditionsFailedError, Rows, Transactions, refused
from trainmaster.adapters.dynamodb.codec import decode, encode, iso
from trainmaster.adapters.dynamodb.guard import Report, understood, unreported
from trainmaster.adapters.dynamodb.history_rows import HISTORY_SINCE, capacity_rows
from trainmaster.adapters.dynamodb.retention import DEFAULT_DAYS, Retention
from trainmaster.adapters.dynamodb.updates import Update
from trainmaster.adapters.dynamodb.writes import Writes
from trainmaster.core.errors import LostRaceError, UnavailableError
from trainmaster.core.history.past_records import CapacityChange, PolicyPut
from trainmaster.core.policy import EARLIER_DEFAULTS, UNMANAGED
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.records import SetAside, StoredPolicy, SubmissionFreeze

_PK, _CURRENT = layout.POLICY_KEY
SEAL_KEY_BYTES = 32
MAX_CHANGES = 40
"""Most changes of capacities in the transaction that puts a policy in force; its other rows tell pools."""
NOTHING = StoredPolicy(revision=0, version=0, paused=False, document={})
"""The empty document, before a first policy is written."""


class DynamoPolicyStore:
    def __init__(
        self,
        client: Any,
        *,
        table: str,
        retention_days: int = DEFAULT_DAYS,
        report: Report = unreported,
    ) -> None:
        self._report = report
        self._client = client
        self._table = table
        self._transactions = Transactions(client)
        self._writes = Writes(table=table, retention=Retention(days=retention_days))

    def current(self) -> StoredPolicy:
        item = self._item(_CURRENT)
        return NOTHING if item is None else _stored(item)

    def revision(self, number: int) -> StoredPolicy | None:
        item = self._item(_revision(number))
        return None if item is None else _stored(item)

    def put(
        self,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        pools: Sequence[str],
        replaces: StoredPolicy,
        history: PolicyPut | None = None,
    ) -> StoredPolicy:
        at, by = (None, "") if history is None else (history.at, history.by)
        new = _next(replaces.followed_by(document, text, at=at, by=by))
        item = _key(_revision(new.revision)) | _attributes(new) | _text_attribute(text)
        kept = {"Put": {"TableName": self._table, "Item": item}}
        changes = () if history is None else history.changes
        rows = list(self._writes.remembered(capacity_rows(changes)))
        extra = [kept, *rows[:MAX_CHANGES]]
        self._write(new, pools, replaces, extra=extra, since=None if history is None else history.at)
        for start in range(MAX_CHANGES, len(rows), MAX_ITEMS):
            self._transactions.write(rows[start : start + MAX_ITEMS])
        return new

    def note_capacity(self, changes: Sequence[CapacityChange]) -> None:
        rows = list(self._writes.remembered(capacity_rows(changes)))
        for start in range(0, len(rows), MAX_ITEMS):
            self._transactions.write(rows[start : start + MAX_ITEMS])

    def plans(self) -> Mapping[str, PlanSeen]:
        rows = Rows(self._client, table=self._table).query(layout.PLANS)
        return {plan.arn: plan for plan in understood(rows, _plan, self._report)}

    def note_plan(self, plan: PlanSeen) -> None:
        item = to_attributes({"pk": layout.PLANS, "sk": plan.arn, **encode(plan)})
        self._transactions.write([{"Put": {"TableName": self._table, "Item": item}}])

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy:  # noqa: FBT001
        new = _next(replace(replaces, paused=paused))
        self._write(new, pools, replaces, extra=[])
        return new

    def set_aside(self, row: SetAside) -> None:
        self._report(row)

    def close(self, freeze: SubmissionFreeze) -> None:
        operations = submissions.of_freeze(freeze, self._writes)
        for start in range(0, len(operations), MAX_ITEMS):
            self._transactions.write(operations[start : start + MAX_ITEMS])

    def reopen(self, freeze: SubmissionFreeze) -> None:
        for operation in submissions.of_reopening(freeze, self._writes):
            with suppress(LostRaceError):
                self._transactions.write([operation])

    def _item(self, sk: str) -> dict[str, Any] | None:
        try:
            answer = self._client.get_item(TableName=self._table, Key=_key(sk), ConsistentRead=True)
        except ClientError as error:
            raise refused(error) from error
        except BotoCoreError as error:
            raise UnavailableError("the table did not answer") from error
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def _write(
        self,
        new: StoredPolicy,
        pools: Sequence[str],
        replaces: StoredPolicy,
        *,
        extra: list[dict[str, Any]],
        since: datetime | None = None,
    ) -> None:
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": _key(_CURRENT) | _attributes(new),
            "ConditionExpression": "version = :old" if replaces.version else "attribute_not_exists(pk)",
        }
        if replaces.version:
            put["ExpressionAttributeValues"] = {":old": value(replaces.version)}
        first = [{"Put": put}, *extra]
        notes = [self._version_update(pool, new.version, since) for pool in sorted({*pools, UNMANAGED})]
        room = MAX_ITEMS - len(first)
        self._transactions.write([*first, *notes[:room]])
        for start in range(room, len(notes), MAX_ITEMS):
            self._write_to_pools([_unless_newer(note) for note in notes[start : start + MAX_ITEMS]])

    def _write_to_pools(self, operations: Sequence[dict[str, Any]]) -> None:
        """Write the version to pools, except those that a newer policy has already reached."""
        while operations:
            try:
                self._transactions.write(operations)
            except ConditionsFailedError as error:
                operations = [
                    operation for number, operation in enumerate(operations) if number not in error.positions
                ]
            else:
                return

    def _version_update(self, pool: str, version: int, since: datetime | None) -> dict[str, Any]:
        """Have a pool's counters carry the version; its history is written from its first policy on."""
        update = Update(put={"policy_version": version})
        if since is not None:
            update.shift.append((HISTORY_SINCE, HISTORY_SINCE, iso(since)))
        return self._writes.update(layout.counters_key(pool), update)


def _plan(item: Mapping[str, Any]) -> PlanSeen:
    return decode(PlanSeen, item)


def _unless_newer(operation: Mapping[str, Any]) -> dict[str, Any]:
    condition = "attribute_not_exists(#n0) OR #n0 < :v0"  # the version is what it sets first
    return {"Update": {**operation["Update"], "ConditionExpression": condition}}


def version_of(item: Mapping[str, Any]) -> int:
    version: int = item.get("version", item["revision"])
    return version


def _stored(item: Mapping[str, Any]) -> StoredPolicy:
    """Decode a stored policy; earlier releases had neither pause nor seal, and named no defaults."""
    document, is_readable = _document(item)
    return StoredPolicy(
        revision=item["revision"],
        version=version_of(item),
        paused=item.get("paused", False),
        document=document,
        text=item.get("text"),
        is_readable=is_readable,
        seal_key=item.get("seal_key", ""),
        defaults=_defaults(item.get("defaults")),
        put_at=datetime.fromisoformat(item["put_at"]) if "put_at" in item else None,
        put_by=item.get("put_by", ""),
    )


def _defaults(stored: object) -> int:
    return stored if isinstance(stored, int) else EARLIER_DEFAULTS


def _document(item: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Decode the document, and tell whether it was readable."""
    try:
        document = json.loads(item["document"])
    except (KeyError, TypeError, ValueError):
        return {}, False
    return (document, True) if isinstance(document, dict) else ({}, False)


def _revision(number: int) -> str:
    return f"v#{number:09d}"


def _next(policy: StoredPolicy) -> StoredPolicy:
    seal_key = policy.seal_key or secrets.token_hex(SEAL_KEY_BYTES)
    return replace(policy, version=policy.version + 1, seal_key=seal_key)


def _attributes(policy: StoredPolicy) -> dict[str, Any]:
    put = {} if policy.put_at is None else {"put_at": iso(policy.put_at), "put_by": policy.put_by}
    return to_attributes(
        {
            "revision": policy.revision,
            "version": policy.version,
            "paused": policy.paused,
            # Not escaped: a document may be 256 KiB of UTF-8, an item 400 KB.
            "document": json.dumps(policy.document, sort_keys=True, ensure_ascii=False),
            "seal_key": policy.seal_key,
            "defaults": policy.defaults,
            **put,
        },
    )


def _text_attribute(text: str | None) -> dict[str, Any]:
    """Encode the policy's text; rows of earlier releases have none."""
    return {} if text is None else to_attributes({"text": text})


def _key(sk: str) -> dict[str, Any]:
    return {"pk": {"S": _PK}, "sk": {"S": sk}}
