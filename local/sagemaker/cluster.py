"""All containers of a job, one a host: they start together, and the first that fails is the job's failure."""

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from local.sagemaker import artifacts
from local.sagemaker.container import Container, Outside
from local.sagemaker.hosts import Place, hosts_of
from local.sagemaker.jobs import FAILURE_REASON_CHARACTERS, TrainingJob

logger = logging.getLogger(__name__)


class Cluster:
    def __init__(self, job: TrainingJob, outside: Outside, root: Path) -> None:
        """Prepare the containers; ``root`` is a folder for this job alone."""
        self._job = job
        self._outside = outside
        self._root = root
        hosts, port = hosts_of(job.groups), outside.ports.take()
        self._containers = [
            Container(job, Place(host=host, hosts=hosts, master_port=port), outside, root / host.name)
            for host in hosts
        ]
        self._lock = threading.Lock()
        self._running = len(hosts)
        self._failed: tuple[Container, int] | None = None
        self._has_started = False

    def fill(self) -> None:
        """Bring in all that the commands need. Raises ``PrepareError``."""
        self.remove()  # what a twin that was killed may have left under this name
        for container in self._containers:
            container.fill()

    def start(self, *, on_failure: Callable[[], None], on_end: Callable[[int], None]) -> None:
        """Start all containers; both callbacks are called at most once.

        ``on_failure``: the first host has failed while others run. ``on_end``: all processes are gone and
        their logs are kept; it gets 0, or the exit code of the first host that failed.
        """
        self._has_started = True
        for container in self._containers:
            container.start(on_exit=self._listener(container, on_failure, on_end))

    @property
    def has_started(self) -> bool:
        return self._has_started

    @property
    def pids(self) -> list[int]:
        return [pid for container in self._containers for pid in container.pids]

    def terminate(self) -> None:
        """Send SIGTERM to the first process of every container."""
        for container in self._containers:
            container.terminate()

    def kill(self) -> None:
        """End all processes; returns after ``on_end``."""
        for container in self._containers:
            container.kill()
        for container in self._containers:
            container.join()

    def failure_reason(self) -> str:
        """Return SageMaker's reason for the first host that failed; script mode adds the kind of error."""
        assert self._failed is not None
        container, exit_code = self._failed
        toolkit = f"ExecuteUserScriptError:\nExitCode {exit_code}"
        default = "" if self._job.spec.entrypoint else toolkit
        head, tail = "AlgorithmError: ", f", exit code: {exit_code}"
        text = artifacts.failure_text(container.layout) or default
        return head + text[: FAILURE_REASON_CHARACTERS - len(head) - len(tail)] + tail

    def upload(self) -> None:
        """Upload last checkpoints, model and output. Raises ``FileNotFoundError`` if a bucket is gone."""
        for container in self._containers:
            container.finish_mirror()
        layouts = [container.layout for container in self._containers]
        artifacts.upload(self._job, layouts, self._outside.store)

    def reclaim(self) -> None:
        """Take the instances away as spot does: only what is in S3 by now is left."""
        for container in self._containers:
            container.stop_mirror()
        self.kill()
        self.remove()

    def abandon(self) -> None:
        """Kill after a failure, and keep the checkpoints that can be kept."""
        self.kill()
        try:
            for container in self._containers:
                container.finish_mirror()
        except FileNotFoundError:
            logger.exception("the last checkpoints of %s are lost", self._job.name)
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def _listener(
        self, container: Container, on_failure: Callable[[], None], on_end: Callable[[int], None]
    ) -> Callable[[int], None]:
        def ended(code: int) -> None:
            with self._lock:
                self._running -= 1
                is_first_failure = code != 0 and self._failed is None
                if is_first_failure:
                    self._failed = (container, code)
                is_last, failed = self._running == 0, self._failed
            if is_last:
                on_end(0 if failed is None else failed[1])
            elif is_first_failure:
                on_failure()

        return ended
