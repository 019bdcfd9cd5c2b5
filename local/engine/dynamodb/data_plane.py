"""The operations on items that the twin answers itself, on moto's tables."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from botocore.validate import ParamValidator
from moto.core.utils import get_service_model

from local.engine.dynamodb import pages, reads, writes
from local.engine.dynamodb.expressions import Params
from local.engine.dynamodb.tables import Tables
from local.engine.dynamodb.transactions import Transactions
from local.engine.dynamodb.values import Wire, invalid

_Answer: TypeAlias = Callable[[Tables, str, Params], Wire]

_ANSWERS: Mapping[str, _Answer] = {
    "BatchGetItem": reads.batch_get_item,
    "BatchWriteItem": writes.batch_write_item,
    "DeleteItem": writes.delete_item,
    "GetItem": reads.get_item,
    "PutItem": writes.put_item,
    "Query": pages.query,
    "Scan": pages.scan,
    "TransactGetItems": reads.transact_get_items,
    "UpdateItem": writes.update_item,
}
_LEGACY = frozenset(
    {
        "AttributesToGet",
        "AttributeUpdates",
        "ConditionalOperator",
        "Expected",
        "KeyConditions",
        "QueryFilter",
        "ScanFilter",
    }
)
"""The parameters from before expressions: moto knows them, we need not."""
_READ_ONLY = ("Describe", "Get", "List", "Query", "Scan")


class DataPlane:
    """Answers or declines. The engine's lock must be held."""

    def __init__(self, account_id: str, now: Callable[[], datetime]) -> None:
        self._tables = Tables(account_id)
        self._transactions = Transactions(self._tables, now)

    def answer(self, operation: str, region: str, params: Params) -> Wire | None:
        """Answer the operation; None if moto has to: call ``moto_answered`` afterwards. Raises AwsError."""
        if operation == "TransactWriteItems":
            _check_form(operation, params)
            return self._transactions.write(region, params)
        if operation not in _ANSWERS or not _LEGACY.isdisjoint(params):
            return None
        _check_form(operation, params)
        return _ANSWERS[operation](self._tables, region, params)

    def moto_answered(self, operation: str) -> None:
        if not operation.startswith(_READ_ONLY):
            self._tables.forget_orders()


def _check_form(operation: str, params: Params) -> None:
    """Check required members and types, by botocore's model of the service."""
    shape = get_service_model("dynamodb").operation_model(operation).input_shape
    report = ParamValidator().validate(params, shape)
    if report.has_errors():
        raise invalid(report.generate_report())
