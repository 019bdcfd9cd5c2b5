"""Stops that a plan asks jobs for: victims of preemptions, and elastic jobs that come back wider."""

from datetime import datetime

from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.steps import preempted_for
from trainmaster.core.lifecycle.width_changes import grown, shrunk_for
from trainmaster.core.planning.changes import GrowthAsked, VictimAsked


def victim_asked(job: Job, change: VictimAsked, *, now: datetime) -> Job:
    """Ask a victim of a preemption to stop: as a whole, or to come back narrower."""
    preemptor = change.preemption.job
    if change.keeps is None:
        return preempted_for(job, preemptor, reclaims=change.reclaims)
    return shrunk_for(job, preemptor, width=change.keeps, now=now, reclaims=change.reclaims)


def asked_to_stop(job: Job, change: VictimAsked | GrowthAsked, *, now: datetime) -> Job:
    """Ask a job to stop as a change of its plan says."""
    if isinstance(change, GrowthAsked):
        return grown(job, change.why, width=change.width, now=now)
    return victim_asked(job, change, now=now)
