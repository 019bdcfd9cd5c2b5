"""Sets up what the check needs: MiniStack, SageMaker beside it, and the stack deployed there."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from demos.deployed.delivery import Delivery
from demos.deployed.emulated_stack import PLACE, Deployment
from demos.deployed.looks import FUNCTIONS, errors_of
from demos.deployed.ministack import REGION, ROOT_KEY, MiniStack, running_ministack
from demos.deployed.sagemaker_service import SageMakerService
from demos.stage.directions import Orders
from demos.stage.evidence import Bucket
from demos.stage.job_requests import checkpoints

if TYPE_CHECKING:
    from boto3 import Session


LONGEST_SECONDS = 180.0
"""Seconds of the longest wait of a scene; the schedule alone takes a minute."""
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    folder: Path
    ministack: MiniStack
    session: "Session"
    """Session of the account's root user."""
    sagemaker: SageMakerService
    delivery: Delivery
    deployment: Deployment
    orders: Orders

    def stored(self, job: str) -> dict[str, str]:
        """Return the SHA-256 of each object of a job's checkpoints, by S3 URI."""
        return Bucket(self.session.client("s3")).hashes(checkpoints(job, PLACE))

    def until(self, what: str, seen: Callable[[], object], *, states: Callable[[], object]) -> None:
        """Wait until it is seen.

        Raises:
            TimeoutError: It is late. The message has ``states`` and what failed: the logs go with MiniStack.
        """
        deadline = time.monotonic() + LONGEST_SECONDS
        while not seen():
            if time.monotonic() > deadline:
                late = f"{what}: not seen in {LONGEST_SECONDS:.0f} s; the queue: {states()}"
                errors = [f"{name}: {line}" for name in FUNCTIONS for line in errors_of(self.session, name)]
                raise TimeoutError("\n".join([late, *self.delivery.failures, *errors]))
            time.sleep(LOOK_SECONDS)


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """Run everything within the block, and nothing after it. Changes this process's environment."""
    sagemaker = SageMakerService(folder / "journal.jsonl")
    work = folder / "training"
    work.mkdir()
    with closing(sagemaker), running_ministack(folder, sagemaker_url=sagemaker.url) as ministack:
        os.environ.update(ministack.environment())
        session = boto3.Session(ROOT_KEY, ROOT_KEY, region_name=REGION)
        delivery = Delivery(session)
        with (
            delivery.running(),
            sagemaker.opened(session, delivery, work=work, reach=ministack.environment()),
        ):
            yield World(
                folder=folder,
                ministack=ministack,
                session=session,
                sagemaker=sagemaker,
                delivery=delivery,
                deployment=Deployment(ministack=ministack, session=session, folder=folder / "build"),
                orders=Orders(folder),
            )
