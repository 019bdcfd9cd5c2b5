"""Announces changes to the event bus: at once and once, unless the world has it otherwise."""

import logging
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from local.clock import TwinClock
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.ports import EventSink
from local.sagemaker.views import event_detail
from local.world_in_force import WorldInForce
from local.worlds import deliveries

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcer:
    events: EventSink
    clock: TwinClock
    world: WorldInForce
    seed: int

    def publish(self, job: TrainingJob) -> None:
        """Send an event of the job's last step; the draw depends on job and step, not on other threads."""
        draw = Random(f"{self.seed}/{job.name}/{len(job.transitions)}")  # noqa: S311  not a secret
        for delivery in deliveries(self.world.now, draw):
            detail = event_detail(job)
            if not delivery.has_tags:
                del detail["Tags"]
            send = partial(self._send, detail, job.arn)
            if delivery.after:
                self.clock.call_later(delivery.after, send)
            else:
                send()

    def _send(self, detail: dict[str, Any], arn: str) -> None:
        try:
            self.events.publish(detail, [arn])
        except Exception:  # the bulkhead to the event bus: a job goes on without it
            logger.exception("no event for %s", arn)
