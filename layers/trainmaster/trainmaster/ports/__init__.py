"""Protocols for all that the control plane needs from outside.

Adapters implement them, and so do the fakes of the tests.
"""

from trainmaster.ports.array_tables import DependencyReader, DependencyStore
from trainmaster.ports.history import HistoryReader
from trainmaster.ports.outside import (
    AlarmKeeper,
    AlarmReader,
    Beside,
    CheckpointReader,
    Clock,
    FolderRegister,
    LogReader,
    Mailer,
    MetricReader,
    Notifier,
    PlanReader,
    TrainingApi,
    TrainingJobList,
    TrainingJobReader,
    Turns,
    WakeUps,
)
from trainmaster.ports.policies import PolicyStore
from trainmaster.ports.repairs import RepairReader, RepairStore, SetAsideRegister
from trainmaster.ports.table import (
    FrontRegister,
    JobReader,
    JobStore,
    LedgerReader,
    OutboxStore,
    PaceStore,
    PoolReader,
    QueueReader,
    ReadCountStore,
    Rotation,
    SnapshotReader,
    SpotReader,
    ViolationReader,
)

__all__ = [
    "AlarmKeeper",
    "AlarmReader",
    "Beside",
    "CheckpointReader",
    "Clock",
    "DependencyReader",
    "DependencyStore",
    "FolderRegister",
    "FrontRegister",
    "HistoryReader",
    "JobReader",
    "JobStore",
    "LedgerReader",
    "LogReader",
    "Mailer",
    "MetricReader",
    "Notifier",
    "OutboxStore",
    "PaceStore",
    "PlanReader",
    "PolicyStore",
    "PoolReader",
    "QueueReader",
    "ReadCountStore",
    "RepairReader",
    "RepairStore",
    "Rotation",
    "SetAsideRegister",
    "SnapshotReader",
    "SpotReader",
    "TrainingApi",
    "TrainingJobList",
    "TrainingJobReader",
    "Turns",
    "ViolationReader",
    "WakeUps",
]
