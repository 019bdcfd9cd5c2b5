"""The container of one host: a local process with a folder for /opt/ml, its log and its checkpoints."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.clock import TwinClock
from local.journal import Journal, ProcessEntry
from local.namespace import in_namespace, namespaces_refused
from local.processes import Child, Command
from local.sagemaker import inputs, script_mode
from local.sagemaker.capacity import Capacity
from local.sagemaker.checkpoints import CheckpointMirror
from local.sagemaker.container_environment import MARK, block_end, container_environment
from local.sagemaker.container_logs import LogStream
from local.sagemaker.hosts import Place, Ports
from local.sagemaker.inputs import PrepareError
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.ports import LogSink, MetricSink, ObjectStore
from local.sagemaker.slow_stops import SlowStops
from local.sagemaker.spec import DEFAULT_CHECKPOINT_PATH
from local.sagemaker.toolkit import gpu_count
from local.world_in_force import WorldInForce

logger = logging.getLogger(__name__)

_NOT_STARTED_EXIT_CODE = 127
"""Docker's exit code for a container whose command does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The parts that the rooms of the twin share."""

    clock: TwinClock
    journal: Journal
    store: ObjectStore
    logs: LogSink
    metrics: MetricSink
    region: str
    work_dir: Path
    """Folder for the files of running jobs."""
    environment: Callable[[str], Mapping[str, str]]
    """Returns how a container reaches AWS, endpoint and credentials, by role ARN."""
    may_publish: Callable[[str], bool] = lambda _role_arn: True
    """Whether the hosts of a job publish their metrics, which they do with the rights of its role."""
    ports: Ports = field(default_factory=Ports)
    capacity: Capacity = field(default_factory=Capacity)
    world: WorldInForce = field(default_factory=WorldInForce)
    slow_stops: SlowStops = field(default_factory=SlowStops)


class Container:
    def __init__(self, job: TrainingJob, place: Place, outside: Outside, root: Path) -> None:
        self._job = job
        self._place = place
        self._outside = outside
        checkpoints = job.spec.checkpoints
        path = checkpoints.local_path if checkpoints else DEFAULT_CHECKPOINT_PATH
        self.layout = Layout(root=root, checkpoint_path=path, is_mounted=job.spec.needs_opt_ml)
        self._mirror = (
            CheckpointMirror(
                self.layout.checkpoints,
                checkpoints.location,
                outside.store,
                by_prefix=True,
            )
            if checkpoints
            else None
        )
        self._child: Child | None = None

    def fill(self) -> None:
        """Bring in all that the command needs. Raises ``PrepareError``."""
        spec = self._job.spec
        if not spec.entrypoint and not script_mode.is_script_mode(spec):
            raise PrepareError(
                "No images run here: give the job a ContainerEntrypoint, or a script by the hyperparameters "
                "sagemaker_program and sagemaker_submit_directory"
            )
        if self.layout.is_mounted and (why := namespaces_refused()):
            raise PrepareError(
                "The SDK v3 starts its jobs with scripts that need /opt/ml itself, and this machine refuses "
                f"the namespaces that the twin makes one in: {why}. Allow unprivileged user namespaces, or "
                "give the job a ContainerEntrypoint of its own (use_launcher)"
            )
        inputs.fill(self.layout, spec, self._place, self._outside.store)
        if self._mirror is not None:
            self._mirror.restore()

    def start(self, on_exit: Callable[[int], None]) -> None:
        """Start it; ``on_exit`` gets the exit code once the process is gone and its log is kept."""
        now = self._outside.clock.now
        stream = f"{self._job.name}/{self._place.host.name}-{round(now().timestamp())}"
        logs = LogStream(stream, self._outside.logs, now)

        def ended(code: int) -> None:
            if self._child is not None:
                self._note("exit", exit_code=code)
            logs.close()
            on_exit(code)

        try:
            self._child = Child(self._command(), on_output=logs.write, on_exit=ended)
        except OSError as error:
            logs.write(f"{error}\n".encode())
            ended(_NOT_STARTED_EXIT_CODE)
            return
        self._note("start")
        self._child.watch()
        if self._mirror is not None:
            self._mirror.start()

    @property
    def pids(self) -> list[int]:
        return [self._child.pid] if self._child is not None and self._child.is_running else []

    def terminate(self) -> None:
        """Send SIGTERM to the container's first process."""
        if self._child is not None and self._child.terminate():
            self._note("signal", signal="SIGTERM")

    def kill(self) -> None:
        """Begin to end all processes."""
        if self._child is not None and self._child.is_running:
            self._note("signal", signal="SIGKILL")
            self._child.kill()

    def join(self) -> None:
        """Returns after ``on_exit``."""
        if self._child is not None:
            self._child.join()

    def stop_mirror(self) -> None:
        """Stop uploading: only the checkpoints that are in S3 by now are left."""
        if self._mirror is not None:
            self._mirror.stop()

    def finish_mirror(self) -> None:
        """Upload the last checkpoints of a container that has ended.

        Raises:
            FileNotFoundError: the bucket is gone.
        """
        if self._mirror is not None:
            self._mirror.finish()

    def _command(self) -> Command:
        spec, layout = self._job.spec, self.layout
        if spec.entrypoint:
            argv, folder = [layout.localized(part) for part in spec.entrypoint], layout.root
        else:
            values = script_mode.user_hyperparameters(layout.localized_map(spec.hyperparameters))
            argv, folder = (
                script_mode.command(spec, values, self._place, processes=gpu_count() or 1),
                layout.code,
            )
        environment = container_environment(
            self._job,
            layout,
            self._place,
            region=self._outside.region,
            given=self._outside.environment(self._job.spec.role_arn),
        )
        environment |= block_end(self._job.block_end, self._outside.clock)
        if layout.is_mounted:
            argv = in_namespace(layout.opt, argv)
        return Command(argv=argv, env=environment, cwd=folder, mark=MARK)

    def _note(self, event: str, *, signal: str | None = None, exit_code: int | None = None) -> None:
        assert self._child is not None
        entry = ProcessEntry(
            training_job=self._job.name,
            host=self._place.host.name,
            event=event,
            pid=self._child.pid,
            signal=signal,
            exit_code=exit_code,
        )
        self._outside.journal.process(entry)
