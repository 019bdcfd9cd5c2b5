"""The worlds of the twin: how AWS behaves beside what its API says. Plain data and draws, no sockets."""

from local.worlds.draws import Delivery, deliveries, latency
from local.worlds.endings import End, PendingEnd, pending_end
from local.worlds.rates import Rates
from local.worlds.refusals import (
    CAPACITY_TYPES,
    ON_DEMAND,
    QUOTA_NAMES,
    Refusal,
    asked,
    capacity_type,
    keep_alive_refusal,
    keeps_warm,
    refusal,
)
from local.worlds.world import Latency, World, WorldError
from local.worlds.world_table import HARSH, KIND, VALUES, WORLDS, changed, shown

__all__ = [
    "CAPACITY_TYPES",
    "HARSH",
    "KIND",
    "ON_DEMAND",
    "QUOTA_NAMES",
    "VALUES",
    "WORLDS",
    "Delivery",
    "End",
    "Latency",
    "PendingEnd",
    "Rates",
    "Refusal",
    "World",
    "WorldError",
    "asked",
    "capacity_type",
    "changed",
    "deliveries",
    "keep_alive_refusal",
    "keeps_warm",
    "latency",
    "pending_end",
    "refusal",
    "shown",
]
