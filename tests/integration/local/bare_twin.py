"""A twin with nothing deployed: front door, engine, identities; for the tests of just these."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from local.clock import TwinClock
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.front_door import FrontDoor
from local.identity.identities import Credentials, Identities
from local.journal import Journal

REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BareTwin:
    clock: TwinClock
    engine: MotoEngine
    identities: Identities
    faults: Faults
    door: FrontDoor
    admin: Credentials
    journal_path: Path

    @property
    def account_id(self) -> str:
        return self.engine.account_id

    def client(self, service: str, who: Credentials | None = None, **settings: Any) -> Any:
        session = _session(who or self.admin)
        config = Config(retries={"total_max_attempts": 1}, **settings)
        return session.client(service, endpoint_url=self.door.endpoint_url, config=config)  # type: ignore[call-overload]

    def function_role(self, *statements: dict[str, Any]) -> Credentials:
        """Keys of a session that may do what the statements say and nothing else."""
        arn = f"arn:aws:iam::{self.account_id}:role/limited"
        self.identities.add_role(arn, [{"Version": "2012-10-17", "Statement": list(statements)}])
        return self.identities.assume(arn, "function")

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal_path.read_text().splitlines()]


@cache
def _session(keys: Credentials) -> boto3.session.Session:
    """One a caller: a session loads the services' models again."""
    return boto3.session.Session(
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        region_name=REGION,
    )


@contextmanager
def bare_twin(folder: Path, *, manual_from: datetime | None = None) -> Iterator[BareTwin]:
    clock = TwinClock(manual=manual_from is not None, start=manual_from)
    engine, faults = MotoEngine(clock=clock, region=REGION), Faults()
    identities = Identities(engine.account_id)
    journal = Journal(folder / "journal.jsonl", clock)
    door = FrontDoor(port=0, identities=identities, engine=engine, journal=journal, faults=faults)
    door.start()
    try:
        yield BareTwin(
            clock=clock,
            engine=engine,
            identities=identities,
            faults=faults,
            door=door,
            admin=identities.add_user("local-admin"),
            journal_path=folder / "journal.jsonl",
        )
    finally:
        door.close()
        journal.close()
        engine.close()
        clock.close()
