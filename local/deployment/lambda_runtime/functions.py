"""All functions of the stack, each with its pool of processes."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from local.clock import TwinClock
from local.deployment.lambda_runtime.function_environment import Keys, TwinAddress, function_environment
from local.deployment.lambda_runtime.function_logs import FunctionLog
from local.deployment.lambda_runtime.invocation import Outcome
from local.deployment.lambda_runtime.pool import MAX_PROCESSES, FunctionPool, Process, Start
from local.deployment.lambda_runtime.process import Launch
from local.deployment.lambda_runtime.runtime_api import RuntimeApi
from local.deployment.rights import Rights
from local.deployment.wiring import Function
from local.sagemaker.ports import LogSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The parts of the twin that a function process needs."""

    twin_address: TwinAddress
    runtime_url: str
    """URL of the Runtime API, with its token."""
    clock: TwinClock
    clock_file: Path
    logs: LogSink
    read_log: Callable[[str], None]
    """Takes each line of a function's log."""
    log_folder: Path
    rights: Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    runtime_api: RuntimeApi
    invoked: Callable[[str, Outcome], None]
    """Is told of each invocation: ARN of the function, and how it ended."""
    _pools: dict[str, FunctionPool] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, function: Function, keys: Keys, host: Host) -> None:
        """Make the function callable; no process is started yet."""
        pool = FunctionPool(
            timeout_s=function.timeout.total_seconds(),
            start=_starter(function, keys, host),
            max_processes=min(MAX_PROCESSES, function.concurrency or MAX_PROCESSES),
        )
        self._pools[function.arn] = pool
        self._names[function.arn] = function.session_name
        self.runtime_api.add(function, pool)

    def invoke(self, function_arn: str, payload: bytes) -> Outcome:
        """Run the function once and wait for its answer."""
        outcome = self._pools[function_arn].invoke(payload)
        self.invoked(function_arn, outcome)
        return outcome

    def invoke_named(self, name: str, payload: bytes) -> Outcome:
        """Invoke a function by the name its sessions have. Raises KeyError if there is no such function."""
        arns = {known: arn for arn, known in self._names.items()}
        return self.invoke(arns[name], payload)

    def warm(self, function_arns: Iterable[str]) -> None:
        """Make a process of each function ready, one after the other."""
        for arn in function_arns:
            self._pools[arn].warm()

    def killed(self) -> dict[str, int]:
        """Return the invocations that a timeout ended, by function; functions without any are left out."""
        return {self._names[arn]: pool.killed for arn, pool in self._pools.items() if pool.killed}

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


def _starter(function: Function, keys: Keys, host: Host) -> Start:
    runtime_api = host.runtime_url.removeprefix("http://")  # Lambda gives an address without a scheme

    def start(instance_id: str, on_exit: Callable[[int], None]) -> Process:
        stream = f"{host.clock.now():%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        log = FunctionLog(
            group=function.log_group,
            stream=stream,
            sink=host.logs if host.rights.may_write_logs(function, stream) else None,
            read=host.read_log,
            clock=host.clock,
            file=host.log_folder / f"{function.session_name}.log",
        )
        launch = Launch(
            function=function,
            clock_file=host.clock_file,
            environment=function_environment(function, keys, host.twin_address, log_stream=stream),
            log=log,
        )
        return launch.start(f"{runtime_api}/{function.name}/{instance_id}", on_exit)

    return start
