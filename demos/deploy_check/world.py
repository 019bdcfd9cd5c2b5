"""Sets up what the check needs: MiniStack, SageMaker beside it, and the stack deployed there."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from demos.deploy_check.delivery import Delivery
from demos.deploy_check.ministack import REGION, ROOT_KEY, MiniStack, running_ministack
from demos.deploy_check.sagemaker_service import SageMakerService
from demos.deploy_check.stack import Deployment

if TYPE_CHECKING:
    from boto3 import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    folder: Path
    ministack: MiniStack
    session: "Session"
    """Session of the account's root user."""
    sagemaker: SageMakerService
    delivery: Delivery
    deployment: Deployment


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
            )
