"""Many jobs in the table of a twin without the hours it would take to submit them: copies of real rows."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH = 25
"""DynamoDB API reference, BatchWriteItem."""
WAITING_SHARE = 0.25
"""Share of items that are of waiting jobs; the others are of jobs that have ended."""
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.05

Item = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The rows of one job, to be copied under other names."""

    name: str
    entry_id: str
    rows: tuple[Item, ...]

    def copy(self, number: int) -> list[Item]:
        """Copy all of the job's rows under a name and an id of the same lengths; 0 is the job itself."""
        digits = f"{number:06d}"
        changes = {text: text[: -len(digits)] + digits for text in (self.name, self.entry_id)}
        return [replaced(row, changes) for row in self.rows]


class Table:
    """The twin's one table, by the keys of its user."""

    def __init__(self, dynamodb: "DynamoDBClient") -> None:
        self._dynamodb = dynamodb
        (self.name,) = dynamodb.list_tables()["TableNames"]

    def items(self) -> list[Item]:
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=self.name)
        return [row for page in pages for row in page["Items"]]

    def model(self, name: str) -> Model:
        rows = tuple(row for row in self.items() if _is_of(row, name))
        entry_id = next(row["sk"]["S"].split("#")[1] for row in rows if row["sk"]["S"].startswith("h#"))
        return Model(name=name, entry_id=entry_id, rows=rows)

    def fill(self, *, to: int, waiting: Model, ended: Model) -> None:
        """Add copies until the table holds ``to`` items, and count those that wait."""
        missing = to - len(self.items())
        waiters = int(missing * WAITING_SHARE) // len(waiting.rows)
        rest = missing - waiters * len(waiting.rows)
        models = [waiting] * waiters + [ended] * (rest // len(ended.rows))
        rows = [row for number, model in enumerate(models, start=1) for row in model.copy(number)]
        for start in range(0, len(rows), BATCH):
            puts: Any = [{"PutRequest": {"Item": row}} for row in rows[start : start + BATCH]]
            self._dynamodb.batch_write_item(RequestItems={self.name: puts})
        self._count(waiters)

    def _count(self, waiters: int) -> None:
        """Add the waiters to the team's counter, which has to agree with the rows."""
        (team,) = [row for row in self.items() if row["pk"]["S"].startswith("T#")]
        self._dynamodb.update_item(
            TableName=self.name,
            Key={"pk": team["pk"], "sk": team["sk"]},
            UpdateExpression="ADD waiting :more",
            ExpressionAttributeValues={":more": {"N": str(waiters)}},
        )


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not seen():
        if time.monotonic() > deadline:
            raise TimeoutError("the twin did not get there")
        time.sleep(_POLL_SECONDS)


def replaced(content: Any, changes: Mapping[str, str]) -> Any:
    match content:
        case str():
            for old, new in changes.items():
                content = content.replace(old, new)
            return content
        case dict():
            return {name: replaced(part, changes) for name, part in content.items()}
        case list():
            return [replaced(part, changes) for part in content]
        case _:
            return content


def _is_of(item: Item, name: str) -> bool:
    return name in item["pk"]["S"] or name in item["sk"]["S"]


def names(prefix: str) -> Iterator[str]:
    """Yield names long enough for ``Model.copy``, none of them part of another."""
    number = 0
    while True:
        number += 1
        yield f"{prefix}-{number:06d}"
