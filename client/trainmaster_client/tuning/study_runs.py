"""Passes that move a study on: read it, look at its live trials, write what comes next, submit that.

Passes of several processes may meet. When two write, one wins; when both submit a trial, it is one job, since
name and request are the same.
"""

import atexit
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PolicyViolationError,
    TrainmasterClientError,
)
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS, poll_seconds
from trainmaster_client.tuning.proposals import proposed
from trainmaster_client.tuning.study import Seen, Study, Trial, TrialStatus, advanced, stopped
from trainmaster_client.tuning.study_store import StoredStudy, StudyChangedError, StudyPlace, StudyStore
from trainmaster_client.tuning.tuning_requests import TuningPlan, trial_request

LONGEST_FAILURE = 1024
"""Characters. Source: SageMaker API reference, HyperParameterTrainingJobSummary, FailureReason."""
_REFUSED = (InvalidRequestError, PolicyViolationError, ConflictError)
"""Errors that repeating the request will not change; any other error may pass."""

_log = logging.getLogger("trainmaster")


class TrialQueue(Protocol):
    """The jobs of the queue that a study needs. Methods raise what the API client raises."""

    def look(self, name: str, metric: str) -> Seen | None:
        """Return the trial's job as it is now; None if neither the queue nor SageMaker has it."""

    def submit(self, request: Mapping[str, Any]) -> None:
        """Submit the trial; the same name and request again is the same job."""

    def cancel(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPasses:
    store: StudyStore
    queue: TrialQueue
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def step(self, place: StudyPlace) -> Study | None:
        """Make one pass and return the study after it; None if there is no such study."""
        stored = self.store.read(place)
        if stored is None or stored.study.ended_at is not None:
            return None if stored is None else stored.study
        plan = TuningPlan.parse(stored.study.request)
        seen = {trial.name: self._look(stored.study, trial, plan) for trial in stored.study.live}
        after = advanced(stored.study, seen, plan, proposed, now=self.now())
        try:
            study = self._saved(place, stored, after, plan)
        except StudyChangedError:
            return stored.study  # the next pass begins with what the other wrote
        for trial in study.live if study.ending is None else ():
            if trial.name not in seen:
                self._submitted(study, trial)
        return study

    def observed(self, place: StudyPlace) -> Study | None:
        """Return the study as it is stored, for a reader; None if there is no such study.

        A study that is being stopped is moved on by every reader: that only cancels trials, it starts none.
        """
        stored = self.store.read(place)
        if stored is None:
            return None
        if stored.study.ending is None or stored.study.ended_at is not None:
            return stored.study
        try:
            return self.step(place)
        except (TrainmasterClientError, ClientError):  # who may only read sees it as it is stored
            return stored.study

    def stop(self, place: StudyPlace) -> None:
        """Record that the study stops, then cancel its trials.

        The record comes first, so that the next reader of the study cancels what this call did not get to.
        """
        while (stored := self.store.read(place)) is not None:
            after = stopped(stored.study, now=self.now())
            try:
                if after != stored.study:
                    kms_key = TuningPlan.parse(after.request).kms_key
                    self.store.save(place, after, etag=stored.etag, kms_key=kms_key)
            except StudyChangedError:
                continue
            self.step(place)
            return

    def _saved(self, place: StudyPlace, stored: StoredStudy, after: Study, plan: TuningPlan) -> Study:
        if after != stored.study:
            self.store.save(place, after, etag=stored.etag, kms_key=plan.kms_key)
        return after

    def _look(self, study: Study, trial: Trial, plan: TuningPlan) -> Seen | None:
        seen = self.queue.look(trial.name, plan.objective.metric)
        if study.ending is None:
            return seen or self._submitted(study, trial)
        if seen is not None and seen.status is TrialStatus.IN_PROGRESS:
            self._cancelled(trial)
        return seen

    def _submitted(self, study: Study, trial: Trial) -> Seen:
        """Submit the trial and return its state.

        One that is refused for good has failed: it counts like one that cannot start.
        """
        try:
            self.queue.submit(trial_request(study.request, trial.number, trial.parameters))
        except _REFUSED as error:
            return Seen(status=TrialStatus.FAILED, ended_at=self.now(), failure=str(error)[:LONGEST_FAILURE])
        return Seen()

    def _cancelled(self, trial: Trial) -> None:
        try:
            self.queue.cancel(trial.name)
        except (ConflictError, NotFoundError):  # it has ended meanwhile
            return


class StudyThreads:
    """Moves studies on beside the program, one thread each, as long as the process lives."""

    def __init__(self, *, first_pause: float = FIRST_POLL_SECONDS) -> None:
        self._first_pause = first_pause
        self._threads: dict[StudyPlace, threading.Thread] = {}
        self._beginning = threading.Lock()

    def begin(self, place: StudyPlace, passes: StudyPasses) -> None:
        """Start a thread for the study, unless one runs already."""
        with self._beginning:
            running = self._threads.get(place)
            if running is not None and running.is_alive():
                return
            if not self._threads:
                atexit.register(self._say_what_is_left)
            thread = threading.Thread(
                target=run_until_end,
                args=(passes, place),
                kwargs={"first_pause": self._first_pause},
                name=f"trainmaster-tuning-{place.tuning_job}",
                daemon=True,
            )
            self._threads[place] = thread
            thread.start()

    def keep_on(self, place: StudyPlace, passes: StudyPasses) -> None:
        """Start another thread for a study begun here if its thread is gone, as in a forked process."""
        if place in self._threads:
            self.begin(place, passes)

    def _say_what_is_left(self) -> None:
        for place, thread in self._threads.items():
            if thread.is_alive():
                _log.warning(
                    "The tuning job %s has not ended. Its training jobs continue; to start further ones: "
                    "trainmaster tune attach %s --output %s",
                    place.tuning_job,
                    place.tuning_job,
                    place.output_path,
                )


def run_until_end(
    passes: StudyPasses,
    place: StudyPlace,
    *,
    first_pause: float = FIRST_POLL_SECONDS,
    tell: Callable[[Study], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Study | None:
    """Make pass after pass until the study has ended; return it, or None if there is no such study.

    Errors are logged once and the pass is repeated: credentials are renewed, networks come back.

    Args:
        passes: Reads and moves on the study.
        place: The study.
        first_pause: Seconds before the second pass; pauses grow while nothing changes.
        tell: Called with the study after each change.
        sleep: Waits for a number of seconds.
    """
    last: Study | None = None
    reported_failure, quiet = "", 0.0
    while True:
        try:
            study, failure = passes.step(place), ""
        except (TrainmasterClientError, ClientError, BotoCoreError) as error:
            study, failure = last, str(error)
            if failure != reported_failure:
                _log.warning("The study %s is interrupted: %s Trying again.", place.url, error)
        if not failure and (study is None or study.ended_at is not None):
            if study is not None:
                tell(study)
            return study
        if study is not None and study != last:
            tell(study)
            quiet = 0.0
        last, reported_failure = study, failure
        pause = poll_seconds(quiet, first=first_pause)
        sleep(pause)
        quiet += pause
