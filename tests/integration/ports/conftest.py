"""The real table and the in-memory one: every test of this folder runs on both."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import boto3
import pytest
from moto import mock_aws
from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoPolicyStore, DynamoReader
from trainmaster.core.monitoring.metrics import Sample

from tests.integration.conftest import make_table
from tests.integration.ports.plane import DOCUMENT, Plane
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

NUMBERS = count()
"""A table for each test: making a client costs more than making a table."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with mock_aws():
            yield boto3.client("dynamodb")


@pytest.fixture(params=["dynamodb", "in_memory"])
def plane(request: pytest.FixtureRequest) -> Iterator[Plane]:
    table = f"table-{next(NUMBERS)}"
    makers: dict[str, Callable[[list[Sample]], tuple[Any, Any, Any]]] = {
        "dynamodb": lambda counted: _dynamodb(request.getfixturevalue("client"), table, counted),
        "in_memory": _in_memory,
    }
    counted: list[Sample] = []
    store, reader, policies = makers[request.param](counted)
    policy = policies.put(DOCUMENT, pools=["main"], replaces=policies.current())
    yield Plane(store=store, reader=reader, policies=policies, policy=policy, counted=counted)
    if request.param == "dynamodb":  # moto copies every table there is for each transaction
        request.getfixturevalue("client").delete_table(TableName=table)


def _dynamodb(client: Any, table: str, counted: list[Sample]) -> tuple[Any, Any, Any]:
    make_table(client, table)
    store = DynamoJobStore(client, table=table, retention_days=90, measure=counted.extend)
    return store, DynamoReader(client, table=table), DynamoPolicyStore(client, table=table)


def _in_memory(counted: list[Sample]) -> tuple[Any, Any, Any]:
    tables = Tables()
    return MemoryJobStore(tables, measure=counted.extend), MemoryReader(tables), MemoryPolicyStore(tables)
