"""Access to the table: its layout, its transactions and its reads."""

from collections.abc import Callable, Iterable
from typing import Any

from trainmaster.adapters.dynamodb.account import DynamoAccount, DynamoReadCounts
from trainmaster.adapters.dynamodb.folder_rows import DynamoFolders
from trainmaster.adapters.dynamodb.fronts import DynamoFronts
from trainmaster.adapters.dynamodb.policy_store import DynamoPolicyStore
from trainmaster.adapters.dynamodb.queue_reads import Beside, one_by_one
from trainmaster.adapters.dynamodb.reads import DynamoReader
from trainmaster.adapters.dynamodb.register import DynamoRegister
from trainmaster.adapters.dynamodb.repair_store import DynamoRepairStore
from trainmaster.adapters.dynamodb.store import DynamoJobStore
from trainmaster.core.monitoring.metrics import Sample

__all__ = [
    "DynamoAccount",
    "DynamoFolders",
    "DynamoFronts",
    "DynamoJobStore",
    "DynamoPolicyStore",
    "DynamoReadCounts",
    "DynamoReader",
    "DynamoRegister",
    "DynamoRepairStore",
    "DynamoTable",
]


class DynamoTable:
    """Builds the parts, which share the register of unreadable rows."""

    def __init__(
        self,
        client: Any,
        *,
        name: str,
        retention_days: int,
        measure: Callable[[Iterable[Sample]], None],
        beside: Beside = one_by_one,
    ) -> None:
        self.register = DynamoRegister(client, table=name)
        report = self.register.see
        self.store = DynamoJobStore(
            client, table=name, retention_days=retention_days, measure=measure, report=report
        )
        self.reader = DynamoReader(client, table=name, report=report, beside=beside)
        self.policies = DynamoPolicyStore(client, table=name, retention_days=retention_days, report=report)
        self.repairs = DynamoRepairStore(client, table=name)
        self.account = DynamoAccount(client, table=name)
        self.fronts = DynamoFronts(client, table=name)
        self.folders = DynamoFolders(client, table=name)
        self._name = name

    def read_counts(self, client: Callable[[], Any]) -> DynamoReadCounts:
        return DynamoReadCounts(client, table=self._name)
