"""Rows spoiled by hand, in a plane of two pools; and what is said of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from tests.builders import A, B
from tests.integration.rows import Item
from tests.integration.world import World

TWO_POOLS = {"pools": [{"name": "main", "capacity": {A: 2}}, {"name": "other", "capacity": {B: 1}}]}
ON_B = {"InstanceType": B, "InstanceCount": 1, "VolumeSizeInGB": 10}
QUEUE_ROWS = ("O#main", "OT#main", "Q#main")
"""How the partitions begin in which a job that waits in its turn has a row."""
Change = Callable[[Item], Item | None]


def spoil(world: World, pk: str, sk: str, change: Change) -> Item | None:
    """Replace the one row whose key begins so, or delete it; returns what it is now."""
    found = [
        item for item in world.items() if item["pk"]["S"].startswith(pk) and item["sk"]["S"].endswith(sk)
    ]
    assert len(found) == 1, [(item["pk"], item["sk"]) for item in found]
    after = change(dict(found[0]))
    others = [item for item in world.items() if item != found[0]]
    world.put_back([*others, *([] if after is None else [after])])
    return after


def gone(_: Item) -> None:
    """Deleted."""


def lacks(*names: str) -> Change:
    return lambda item: {name: content for name, content in item.items() if name not in names}


def says(**contents: Any) -> Change:
    """``__`` in a name stands for ``#``."""
    serialized = {
        name.replace("__", "#"): TypeSerializer().serialize(content) for name, content in contents.items()
    }
    return lambda item: item | serialized


def rows_of(world: World, pk: str) -> dict[str, Item]:
    return {item["sk"]["S"]: item for item in world.items() if item["pk"]["S"] == pk}


def set_aside(world: World) -> dict[str, int]:
    """By pool, and in all."""
    answer = world.api("GET", "/pools")
    assert answer["status"] == 200, answer
    return {pool["name"]: pool["set_aside"] for pool in answer["pools"]} | {"all": answer["set_aside"]}


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the metric of rows set aside says beside its figure, the pool's own dimension only."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "RowsSetAside" in line]
    return [line["note"] for line in lines if "pool" in line]
