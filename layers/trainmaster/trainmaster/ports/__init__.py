"""What the plane needs of the outside, as small protocols; adapters and the tests' fakes implement them."""

from trainmaster.ports.outside import (
    AlarmKeeper,
    AlarmReader,
    CheckpointReader,
    Clock,
    Doorbell,
    LogReader,
    Mailer,
    Notifier,
    TrainingApi,
    TrainingJobReader,
)
from trainmaster.ports.table import (
    ErrandStore,
    JobReader,
    JobStore,
    LedgerReader,
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
    "Doorbell",
    "ErrandStore",
    "JobReader",
    "JobStore",
    "LedgerReader",
    "LogReader",
    "Mailer",
    "Notifier",
    "PolicyStore",
    "PoolReader",
    "QueueReader",
    "SnapshotReader",
    "SpotReader",
    "TrainingApi",
    "TrainingJobReader",
    "ViolationReader",
]
