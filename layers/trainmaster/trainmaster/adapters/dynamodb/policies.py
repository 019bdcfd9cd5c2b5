"""PolicyStore over DynamoDB.

Each pool's counters carry the version, so that a claim decided on an old policy fails.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import from_attributes, to_attributes, value
from trainmaster.adapters.dynamodb.transactions import Transactions, unavailable
from trainmaster.errors import UnavailableError
from trainmaster.ports import StoredPolicy

_PK = "POLICY"
_CURRENT = "current"
SEAL_KEY_BYTES = 32
NOTHING = StoredPolicy(revision=0, version=0, paused=False, document={})
"""Before anybody wrote a policy: the empty document."""


class DynamoPolicyStore:
    def __init__(self, client: Any, *, table: str) -> None:
        self._client = client
        self._table = table
        self._transactions = Transactions(client)

    def current(self) -> StoredPolicy:
        item = self._item()
        if item is None:
            return NOTHING
        return StoredPolicy(
            revision=item["revision"],
            version=item["version"],
            paused=item["paused"],
            document=json.loads(item["document"]),
            seal_key=item["seal_key"],
        )

    def put(
        self, document: Mapping[str, Any], *, pools: Sequence[str], replaces: StoredPolicy
    ) -> StoredPolicy:
        new = _next(replace(replaces, revision=replaces.revision + 1, document=document))
        kept = {"Put": {"TableName": self._table, "Item": _key(f"v#{new.revision:09d}") | _attributes(new)}}
        self._write(new, pools, replaces, extra=[kept])
        return new

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy:  # noqa: FBT001
        new = _next(replace(replaces, paused=paused))
        self._write(new, pools, replaces, extra=[])
        return new

    def _item(self) -> dict[str, Any] | None:
        try:
            answer = self._client.get_item(TableName=self._table, Key=_key(_CURRENT), ConsistentRead=True)
        except ClientError as error:
            raise unavailable(error) from error
        except BotoCoreError as error:
            raise UnavailableError("the table did not answer") from error
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def _write(
        self, new: StoredPolicy, pools: Sequence[str], replaces: StoredPolicy, *, extra: list[dict[str, Any]]
    ) -> None:
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": _key(_CURRENT) | _attributes(new),
            "ConditionExpression": "version = :old" if replaces.version else "attribute_not_exists(pk)",
        }
        if replaces.version:
            put["ExpressionAttributeValues"] = {":old": value(replaces.version)}
        self._transactions.write([{"Put": put}, *extra, *self._told(pools, new.version)])

    def _told(self, pools: Iterable[str], version: int) -> list[dict[str, Any]]:
        return [
            {
                "Update": {
                    "TableName": self._table,
                    "Key": dict(
                        zip(("pk", "sk"), ({"S": part} for part in layout.counters_key(pool)), strict=True)
                    ),
                    "UpdateExpression": "SET policy_version = :v",
                    "ExpressionAttributeValues": {":v": value(version)},
                },
            }
            for pool in pools
        ]


def _next(policy: StoredPolicy) -> StoredPolicy:
    seal_key = policy.seal_key or secrets.token_hex(SEAL_KEY_BYTES)
    return replace(policy, version=policy.version + 1, seal_key=seal_key)


def _attributes(policy: StoredPolicy) -> dict[str, Any]:
    return to_attributes(
        {
            "revision": policy.revision,
            "version": policy.version,
            "paused": policy.paused,
            # Not escaped: a document may be 256 KiB of UTF-8, an item 400 KB.
            "document": json.dumps(policy.document, sort_keys=True, ensure_ascii=False),
            "seal_key": policy.seal_key,
        },
    )


def _key(sk: str) -> dict[str, Any]:
    return {"pk": {"S": _PK}, "sk": {"S": sk}}
