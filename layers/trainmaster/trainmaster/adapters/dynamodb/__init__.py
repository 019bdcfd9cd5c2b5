"""The table: one room for its layout, its transactions and its reads."""

from trainmaster.adapters.dynamodb.account import DynamoAccount
from trainmaster.adapters.dynamodb.policy_store import DynamoPolicyStore
from trainmaster.adapters.dynamodb.reads import DynamoReader
from trainmaster.adapters.dynamodb.register import DynamoRegister
from trainmaster.adapters.dynamodb.repair_store import DynamoRepairStore
from trainmaster.adapters.dynamodb.store import DynamoJobStore

__all__ = [
    "DynamoAccount",
    "DynamoJobStore",
    "DynamoPolicyStore",
    "DynamoReader",
    "DynamoRegister",
    "DynamoRepairStore",
]
