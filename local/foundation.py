"""Sets up what the twin stands on before a deployment: time, state, identities, the door."""

import fcntl
import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from local.clock import TwinClock
from local.config import TwinConfig
from local.deployment.deployment_errors import StateInUseError
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.front_door import FrontDoor
from local.identity.identities import Credentials, Identities
from local.journal import Journal

USER = "local-admin"
_OWNER_ONLY = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    state: Path
    clock: TwinClock
    clock_file: Path
    engine: MotoEngine
    identities: Identities
    admin: Credentials
    journal: Journal
    faults: Faults
    door: FrontDoor

    @property
    def account_id(self) -> str:
        return self.engine.account_id


def lay(config: TwinConfig, resources: ExitStack) -> Foundation:
    """Build it; ``resources`` closes it.

    Raises:
        StateInUseError: Another twin lives on the state folder.
        OSError: The port is in use, or a file cannot be written.
    """
    state = _state_folder(config, resources)
    _lock(state, resources)
    if config.ready is not None:
        config.ready.unlink(missing_ok=True)  # of a twin that was killed: nobody may take it for this one's
    clock = TwinClock(manual=config.manual, speed=config.speed, start=config.start)
    resources.callback(clock.close)
    clock_file = state / "clock"
    clock.share(clock_file)
    engine = MotoEngine(clock=clock, region=config.region)
    resources.callback(engine.close)
    identities = Identities(engine.account_id)
    journal = Journal(config.journal, clock)
    resources.callback(journal.close)
    faults = Faults()
    door = FrontDoor(port=config.port, identities=identities, engine=engine, journal=journal, faults=faults)
    resources.callback(door.close)
    return Foundation(
        state=state,
        clock=clock,
        clock_file=clock_file,
        engine=engine,
        identities=identities,
        admin=identities.add_user(USER),
        journal=journal,
        faults=faults,
        door=door,
    )


def _state_folder(config: TwinConfig, resources: ExitStack) -> Path:
    if config.state is None:
        return Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="trainmaster-")))
    config.state.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)  # one that is there keeps its mode
    return config.state.resolve()


def own_folder(state: Path, name: str) -> Path:
    """Make a folder that other users cannot enter, even if they may read the state folder around it."""
    folder = state / name
    folder.mkdir(exist_ok=True)
    folder.chmod(_OWNER_ONLY)
    return folder


def _lock(state: Path, resources: ExitStack) -> None:
    """Lock the state; the kernel unlocks it however the twin ends, and the file may stay."""
    file = resources.enter_context((state / "lock").open("a+", encoding="ascii"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise StateInUseError(state, file.read().strip() or "?") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
