"""What the plane needs of the outside, as small protocols; adapters and the tests' fakes implement them."""

from trainmaster.ports.outside import (
    AlarmKeeper,
    AlarmReader,
    CheckpointReader,
    Clock,
    LogReader,
    Mailer,
    Notifier,
    TrainingApi,
    TrainingJobReader,
    WakeUps,
)
from trainmaster.ports.table import (
    JobReader,
    JobStore,
    LedgerReader,
    OutboxStore,
    PolicyStore,
    PoolReader,
    QueueReader,
    SnapshotReader,
    SpotReader,
    ViolationReader,
)

__all__ = [
    "AlarmKeeper",
    "AlarmReader",
    "CheckpointReader",
    "Clock",
    "JobReader",
    "JobStore",
    "LedgerReader",
    "LogReader",
    "Mailer",
    "Notifier",
    "OutboxStore",
    "PolicyStore",
    "PoolReader",
    "QueueReader",
    "SnapshotReader",
    "SpotReader",
    "TrainingApi",
    "TrainingJobReader",
    "ViolationReader",
    "WakeUps",
]
