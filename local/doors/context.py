"""The parts of the twin that both kinds of call need."""

from dataclasses import dataclass

from local.clock import TwinClock
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.identity.authorizer import Authorizer
from local.identity.identities import Identities
from local.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    identities: Identities
    authorizer: Authorizer
    engine: MotoEngine
    journal: Journal
    clock: TwinClock
    faults: Faults
