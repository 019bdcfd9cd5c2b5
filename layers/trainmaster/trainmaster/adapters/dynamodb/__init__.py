"""The table: one room for its layout, its transactions and its reads."""

from trainmaster.adapters.dynamodb.policies import DynamoPolicyStore
from trainmaster.adapters.dynamodb.reads import DynamoReader
from trainmaster.adapters.dynamodb.store import DynamoJobStore

__all__ = ["DynamoJobStore", "DynamoPolicyStore", "DynamoReader"]
