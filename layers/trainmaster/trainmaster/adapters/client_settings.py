"""How long calls of AWS may take, and how often they are tried."""

from botocore.config import Config

QUICK = Config(
    connect_timeout=2,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 3},
)
"""Fail in time for the caller to act on it."""
TABLE = Config(
    connect_timeout=1,
    read_timeout=4,
    retries={"mode": "standard", "total_max_attempts": 3},
)
"""DynamoDB answers within a second or not at all."""
IN_TURN = Config(
    connect_timeout=2,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 1},
)
"""SageMaker calls: one try each. TurnTaking retries a throttled call at the pace that all callers share."""
BRIEF = Config(connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1})
"""Settings for reads that only enrich an answer: they give up at once."""
