"""Stops training jobs that went round the queue, as far as the stack has the right to."""

from dataclasses import replace

from trainmaster.core.errors import StopDeniedError
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.outbox import not_stopped_notice, to_tell
from trainmaster.core.outbox.messages import Errand
from trainmaster.core.rules.violation import Outcome
from trainmaster.services.scheduler.context import Pass


def stop(errand: Errand, now: Pass) -> None:
    """One that has ended is fine. Without the right: written down, told, and not tried again."""
    assert errand.training_job_name is not None, errand
    try:
        now.training.stop(errand.training_job_name)
    except StopDeniedError as error:
        _give_up(errand, str(error), now)


def _give_up(errand: Errand, why: str, now: Pass) -> None:
    found = errand.found
    assert found is not None, errand
    notice = not_stopped_notice(found.training_job_name, team=found.team, why=why)
    cause = f"not-stopped#{found.training_job_name}#{epoch_ms(found.at)}#{found.revision}"
    tell = to_tell(notice, cause=cause, at=now.clock())
    given_up = replace(found, outcome=Outcome.NOT_STOPPED)
    now.store.record_violation(given_up, replaces=found, errands=[tell])
