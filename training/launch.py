"""PID 1 of a training job: one worker per GPU, SIGTERM handed on once, the reason of a failure recorded.

SageMaker's images start a script below bash, the toolkit and `sh -c torchrun`: they keep SIGTERM from it
(aws/sagemaker-training-toolkit issues 125 and 173) or cut it short. As ContainerEntrypoint this comes first.
It needs no other file, so copy it into any source directory; monitoring/watchdog.py (hangs) is used where it
is found beside it. Guide: docs/training/launcher.md.
"""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

_STOP_SECONDS = 110.0  # from the first SIGTERM to the kill; SageMaker's own comes after 120 (StopTrainingJob)
_GRACE_SECONDS = 10.0  # for the others, when a worker is gone without which they cannot end in order
_BLOCK_END = "SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"  # milliseconds; on a training plan
_CLOSING_SECONDS = 1800.0  # before a window ends SageMaker begins to end its instances (training plans guide)
_WINDOW_SECONDS = (
    240.0  # before that the ranks are asked to stop; less than any drain of the queue, 5m or more
)
_LONGEST_BLOCK_SECONDS = 87_600 * 3600.0  # DurationHours of a training plan (service model)
_HOLD_OPEN = "TRAINMASTER_HOLD_OPEN"  # seconds, or failure:seconds; the queue writes it from the job's tag
_VISIT = b"ssm-session-worker"  # a process of a session of Systems Manager's agent
_FAILURE_CHARACTERS = 1024  # of the failure file; that many become FailureReason (DescribeTrainingJob)
_TAIL_BYTES = 16_384
_ACCELERATED = re.compile(r"ml\.(?:p|g|trn|inf)\d")
_LONGEST = 2**17  # bytes of a variable with its name; Linux starts no program with a longer one
_GROUP = "homogeneousCluster"  # its name where resourceconfig.json has none, as the toolkit has it
_OF_TOOLKIT = {
    "_tuning_objective_metric",
    "default_user_module_name",
    *(f"sagemaker_{word}" for word in ("program", "submit_directory", "enable_cloudwatch_metrics", "region")),
    *(f"sagemaker_{word}" for word in ("container_log_level", "job_name", "s3_output")),
}
_JSON_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')


class LaunchError(Exception):
    """The job cannot be launched; the message alone tells the user what to do."""


class End(IntEnum):
    """How an attempt ends, as the exit code; the names in lower case are the words of status.json."""

    COMPLETED = 0
    FAILED = 1
    PREEMPTED = 128 + signal.SIGTERM  # an unfinished job must not look finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    end: End
    why: str = ""
    is_crash: bool = False  # a signal ended the worker, so it could not say why


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if there is no such file. Raises LaunchError for anything else."""
    try:
        document = json.loads(path.read_bytes()) if path.exists() else {}
    except (ValueError, OSError, RecursionError) as error:
        raise LaunchError(f"{path} cannot be read as a JSON object: {error}") from error
    if not isinstance(document, dict):
        raise LaunchError(f"{path} cannot be read as a JSON object: it is {json.dumps(document)[:60]}")
    return document


def read_resources(path: Path) -> dict[str, Any]:
    """Read which hosts there are, and which of them this one is; empty outside SageMaker.

    Raises LaunchError with all problems of the file at once.
    """
    resources = read_json(path)
    groups, problems = resources.get("instance_groups") or [], list[str]()
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        groups, problems = [], ["instance_groups must be a list of objects"]
    for number, group in enumerate(groups):
        name = group.get("instance_group_name")
        label = f"instance group {number + 1 if name is None else name}"
        texts = ("instance_group_name", "instance_type")
        problems += [f"{label} has no {key}" for key in texts if not is_text(group.get(key))]
        if not are_texts(group.get("hosts")):
            problems.append(
                f"{label} has no hosts" if "hosts" not in group else f"{label}: hosts must be names"
            )
    if "hosts" in resources and not (are_texts(resources["hosts"]) and resources["hosts"]):
        problems.append("hosts must be a list of names")
    keys = ("current_host", "current_group_name", "current_instance_type", "network_interface_name")
    problems += [f"{key} must be a text" for key in keys if not is_text(resources.get(key, key))]
    if problems := problems or misplaced(resources, [host for group in groups for host in group["hosts"]]):
        raise LaunchError(
            f"{path} does not say which hosts train: {'; '.join(problems)}; fix it, or start again"
        )
    return resources


def misplaced(resources: Mapping[str, Any], grouped: Sequence[str]) -> list[str]:
    """List what keeps this host from knowing its place; it would train nothing, and end as if it had.

    ``grouped``: the hosts of all instance groups.
    """
    listed = resources.get("hosts", grouped)
    here = resources.get("current_host")
    problems = [
        f"{host} is listed twice"
        for hosts in (grouped, listed)
        for host in sorted(set(hosts))
        if hosts.count(host) > 1
    ]
    if here is None and len(listed) > 1:
        problems.append(f"current_host is missing, which must be one of {', '.join(listed)}")
    if here is not None and listed and here not in listed:
        problems.append(f"current_host is {here}, the hosts are {', '.join(listed)}")
    elif here is not None and grouped and here not in grouped:
        problems.append(f"current_host is {here}, the hosts of the instance groups are {', '.join(grouped)}")
    return problems


def is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, str(default))
    if not re.fullmatch(r"\d+(?:\.\d+)?", text) or float(text) < 1:
        raise LaunchError(f"{name} must be a number, 1 or more, not {text!r}")
    return float(text)


def window_seconds(env: Mapping[str, str], now: float) -> tuple[float, str]:
    """Return seconds until the ranks are asked to stop as a training plan's window closes, and a warning.

    The seconds are inf without a plan, and for a variable that makes no sense: the warning names it, and the
    job trains as if it were not there. ``now`` is in seconds since the epoch.
    """
    text, before = env.get(_BLOCK_END, ""), env.get("LAUNCH_WINDOW_SECONDS", f"{_WINDOW_SECONDS:g}")
    if not text or before == "off":
        return inf, ""
    left = int(text) / 1000 - now if re.fullmatch(r"[0-9]{1,18}", text) else 0.0
    if not 0 < left < _LONGEST_BLOCK_SECONDS:
        return inf, f"{_BLOCK_END} is ignored: {text!r} is not an instant to come, in milliseconds since 1970"
    warning = ""
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]+)?", before):
        warning = f"LAUNCH_WINDOW_SECONDS is ignored: {before!r} is neither a number of seconds nor off; "
        warning += f"the {_WINDOW_SECONDS:g} of the default count"
        before = str(_WINDOW_SECONDS)
    return max(left - _CLOSING_SECONDS - float(before), 0.0), warning


def hold_seconds(env: Mapping[str, str], *, has_failed: bool) -> float:
    """Return how long to wait for a visitor now: before training, or once it has failed. 0: not now.

    Whatever else the variable holds ends no job, and is not waited for.
    """
    match = re.fullmatch(r"(failure:)?([0-9]{1,6})", env.get(_HOLD_OPEN, ""))
    return float(match[2]) if match and (match[1] is not None) is has_failed else 0.0


def is_visited(processes: Path = Path("/proc")) -> bool:
    """Tell whether somebody has a session in this container."""
    for path in processes.glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if _VISIT in path.read_bytes().partition(b"\0")[0]:
                return True
    return False


def hold_open(env: Mapping[str, str], stop: "Stop", seconds: float, *, then: str) -> None:
    """Wait until the last visitor has left, ``go`` is there or a stop is asked for, at most ``seconds``.

    ``then`` says what follows. The file ``go`` lies in SAGEMAKER_BASE_DIR, /opt/ml.
    """
    go, begun = Path(env.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "go", time.monotonic()
    job, why, was_visited = env.get("TRAINING_JOB_NAME", "JOB"), "its time is over", False
    print(
        f"launcher: open to visitors for {seconds:.0f} s at most, which are billed: trainmaster ssh {job};"
        f" {then} when the last one has left, or after: touch {go}",
        flush=True,
    )
    while (waited := time.monotonic() - begun) < seconds:
        if go.exists():
            why = f"{go} is there"
            break
        if stop.asked_at < inf:
            why = stop.why
            break
        is_there = is_visited()
        if was_visited and not is_there:
            why = "the last visitor has left"
            break
        was_visited = was_visited or is_there
        time.sleep(0.5)
    print(f"launcher: no longer open to visitors after {waited:.0f} s: {why}", flush=True)


def watchdog_beside() -> Any:  # noqa: ANN401  a module
    """Load watchdog.py from monitoring/; None if it is not there.

    It is loaded by its path: a script's own package may be called monitoring, too.
    """
    path = Path(__file__).with_name("monitoring") / "watchdog.py"
    spec = importlib.util.spec_from_file_location("launcher_watchdog", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """A CPU (hardware thread) that this process may run on."""

    number: int
    core: str  # equal for the hardware threads of one core
    node: int  # the memory that is near


def host_cpus(system: Path = Path("/sys/devices/system")) -> list[Cpu]:
    """List the CPUs as Linux describes them; else each CPU is a core, and all memory is equally near."""

    def text(path: Path, default: str) -> str:
        return path.read_text().strip() if path.is_file() else default

    near = dict[int, int]()
    for place in system.glob("node/node[0-9]*"):
        for span in filter(None, text(place / "cpulist", "").split(",")):
            first, _, last = span.partition("-")
            near |= dict.fromkeys(range(int(first), int(last or first) + 1), int(place.name[4:]))
    cores = {cpu: system / f"cpu/cpu{cpu}/topology/thread_siblings_list" for cpu in os.sched_getaffinity(0)}
    return [Cpu(number=cpu, core=text(path, str(cpu)), node=near.get(cpu, 0)) for cpu, path in cores.items()]


def cpu_shares(cpus: Sequence[Cpu], ranks: int) -> list[list[int]]:
    """Divide the CPUs of a host without GPUs among its ranks, one for each core.

    Matrices gain nothing from a second.

    Neighbours come first, so that no rank has cores of two nodes where that can be avoided.
    """
    firsts = {cpu.core: cpu for cpu in sorted(cpus, key=lambda cpu: -cpu.number)}
    ordered = sorted(firsts.values(), key=lambda cpu: (cpu.node, cpu.number))
    cuts = [len(ordered) * at // ranks for at in range(ranks + 1)]
    return [[cpu.number for cpu in ordered[first:end]] for first, end in pairwise(cuts)]


def keep_to_nodes(pids: Sequence[int]) -> None:
    """Bind each process to a node before it has touched any memory, which then is where its cores are."""
    cpus = host_cpus()
    for pid, node in zip(pids, sorted({cpu.node for cpu in cpus}), strict=True):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(pid, {cpu.number for cpu in cpus if cpu.node == node})


def ranks_and_threads(env: Mapping[str, str]) -> tuple[int, int]:
    """Count the ranks of this host, and the threads of each rank.

    A rank beside GPUs has 1 thread, as torchrun sets it: workers must not fight for cores.
    """
    if gpus := gpu_count():
        return int(number(env, "NPROC_PER_NODE", gpus)), 1
    cpus = host_cpus()
    if env.get("NPROC_PER_NODE") == "numa":
        ranks = len({cpu.node for cpu in cpus})
    else:
        ranks = int(number(env, "NPROC_PER_NODE", 1))
    return ranks, max(1, min(len(share) for share in cpu_shares(cpus, ranks)))


def training_hosts(resources: Mapping[str, Any], wanted: str) -> list[str]:
    """List the hosts that train, in the same order on all: those of the instance group ``wanted``.

    If none is wanted, it is the first group with accelerators, else the first. A group may have no instances:
    it is passed over, unless it is the one that is wanted.
    """
    groups = {group["instance_group_name"]: group for group in resources.get("instance_groups", ())}
    if wanted and wanted not in groups:
        raise LaunchError(f"TRAINING_GROUP is {wanted!r}; the job has {', '.join(groups) or 'no groups'}")
    manned = [name for name, group in groups.items() if group["hosts"]]
    fast = (name for name in manned if _ACCELERATED.match(groups[name]["instance_type"]))
    name = wanted or next(fast, next(iter(manned), None))
    here = [host for host in [resources.get("current_host", "localhost")] if not groups]
    hosts = groups[name]["hosts"] if name else resources.get("hosts", here)
    if not hosts:
        raise LaunchError(f"there is no host that could train: {wanted or 'each instance group'} has none")
    return sorted(hosts, key=lambda host: (len(host), host))  # algo-2 before algo-10


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of every worker; the job's own variables win.

    A host that does not train has no GROUP_RANK.
    """
    base = env.get("SAGEMAKER_BASE_DIR", "/opt/ml")
    config = Path(env.get("SM_INPUT_CONFIG_DIR", f"{base}/input/config"))
    resources = read_resources(config / "resourceconfig.json")
    hosts = training_hosts(resources, env.get("TRAINING_GROUP", ""))
    here, interface = resources.get("current_host", hosts[0]), resources.get("network_interface_name")
    per_host, threads = ranks_and_threads(env)
    cache = env.get("SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY")
    mirrored = read_json(config / "checkpointconfig.json").get("LocalPath")
    if not is_text(mirrored or base):
        raise LaunchError(f"{config / 'checkpointconfig.json'}: LocalPath must be a path, not {mirrored!r}")
    ours = {
        "WORLD_SIZE": str(len(hosts) * per_host),
        "LOCAL_WORLD_SIZE": str(per_host),
        "GROUP_RANK": str(hosts.index(here)) if here in hosts else "",
        "MASTER_ADDR": env.get("SM_MASTER_ADDR", hosts[0] if len(hosts) > 1 else "127.0.0.1"),
        "MASTER_PORT": env.get("SM_MASTER_PORT", "7777"),
        "NCCL_SOCKET_IFNAME": interface,
        "GLOO_SOCKET_IFNAME": interface,  # else gloo looks up this host's name, which need not resolve
        "FI_EFA_USE_HUGE_PAGE": "0",  # and no other: efa-cheatsheet.md of AWS's awsome-distributed-training
        "OMP_NUM_THREADS": str(threads),
        "TORCHINDUCTOR_CACHE_DIR": cache and f"{cache}/torchinductor",
        "SM_CHECKPOINT_DIR": mirrored or f"{base}/checkpoints",
    }
    variables = {name: str(text) for name, text in ours.items() if text}
    variables |= {"SM_MASTER_ADDR": variables["MASTER_ADDR"], "SM_MASTER_PORT": variables["MASTER_PORT"]}
    grouped = [host for group in resources.get("instance_groups") or () for host in group["hosts"]]
    resources = {"hosts": grouped or hosts, **resources, "current_host": here}
    widths = width_variables(env, len(hosts) if here in hosts else 0)
    facts = toolkit({**env, "SM_INPUT_CONFIG_DIR": str(config)}, base, resources)
    return variables | facts | dict(env) | widths


def width_variables(env: Mapping[str, str], hosts: int) -> dict[str, str]:
    """Make the variables of an elastic job: the hosts that train in this attempt, and the most it may have.

    The control plane writes the job's tag into TRAINMASTER_WIDTHS: ``2-8``, ``2-8:2`` or ``2 4 8``. Whatever
    else it holds ends no job: only its numbers before a colon count. Empty if no ``hosts`` train.
    """
    if not hosts:
        return {}
    counts = re.findall(r"[0-9]{1,9}", env.get("TRAINMASTER_WIDTHS", "").partition(":")[0])
    largest = max([hosts, *map(int, counts)])
    return {
        "TRAINMASTER_WIDTH": str(hosts),
        "TRAINMASTER_LARGEST_WIDTH": env.get("TRAINMASTER_LARGEST_WIDTH") or str(largest),
    }


def toolkit(env: Mapping[str, str], base: str, resources: Mapping[str, Any]) -> dict[str, str]:
    """Make all variables that sagemaker-training makes of the three files, and the SDK v3's driver.

    Scripts read them.
    """
    config = Path(env["SM_INPUT_CONFIG_DIR"])
    channels = read_json(config / "inputdataconfig.json")
    values: dict[str, Any] = {}
    with suppress(LaunchError):  # command() says so, once there is a place for the reason
        values = {key: as_json(text) for key, text in as_written(env).items()}
    own = {key: value for key, value in values.items() if is_of_script(key)}
    facts = toolkit_paths(base, config) | toolkit_hosts(resources) | toolkit_program(env, values, base)
    dirs = {name: f"{config.parent}/data/{name}" for name in channels}
    facts |= {"hps": own, "channels": sorted(channels), "input_data_config": channels}
    facts |= {"num_cpus": os.cpu_count() or 1, "num_gpus": gpu_count(), "num_neurons": neuron_cores()}
    no_variables = ("channels", "hps", "framework_params", "host_count", "current_host_rank")
    facts["training_env"] = {key: value for key, value in facts.items() if key not in no_variables} | {
        "hyperparameters": own,
        "channel_input_dirs": dirs,
        "additional_framework_parameters": facts["framework_params"],
        "job_name": env.get("TRAINING_JOB_NAME"),
        "master_hostname": resources["hosts"][0],
        "is_master": resources["current_host"] == resources["hosts"][0],
    }
    facts["user_args"] = [
        word for key, value in own.items() for word in (f"{'--'[: len(key)]}{key}", as_argument(value))
    ]
    named = {f"channel_{name}": path for name, path in dirs.items()}
    named |= {f"hp_{name}": value for name, value in own.items()}
    # With a hyphen, as the toolkit has it, and without, as a shell can read it.
    facts |= named | {name.replace("-", "_"): value for name, value in named.items()}
    texts = {f"SM_{name.upper()}": as_variable(value) for name, value in facts.items()}
    return {
        name: text
        for name, text in texts.items()
        if len(f"{name}={text}".encode(errors="replace")) < _LONGEST
    }


def toolkit_paths(base: str, config: Path) -> dict[str, Any]:
    return {
        "model_dir": f"{base}/model",
        "input_dir": str(config.parent),
        "input_config_dir": str(config),
        "input_data_dir": f"{config.parent}/data",
        "output_dir": f"{base}/output",
        "output_data_dir": f"{base}/output/data",
        "output_intermediate_dir": f"{base}/output/intermediate",
        "output_failure": f"{base}/output/failure",
    }


def toolkit_hosts(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the toolkit's facts about all hosts, whether they train or not."""
    groups = {group["instance_group_name"]: group for group in resources.get("instance_groups") or ()}
    hosts, here = resources["hosts"], resources["current_host"]
    mine = next((name for name, group in groups.items() if here in group["hosts"]), _GROUP)
    name = resources.get("current_group_name", mine)
    of_group = groups.get(name, {})
    return {
        "hosts": hosts,
        "current_host": here,
        "current_host_rank": hosts.index(here),
        "host_count": len(hosts),
        "network_interface_name": resources.get("network_interface_name", "eth0"),
        "current_instance_type": resources.get(
            "current_instance_type", of_group.get("instance_type", "local")
        ),
        "current_instance_group": name,
        "current_instance_group_hosts": of_group.get("hosts", []),
        "instance_groups": list(groups),
        "instance_groups_dict": groups,
        "is_hetero": len(groups) > 1,
        "resource_config": resources,
    }


def toolkit_program(env: Mapping[str, str], values: Mapping[str, Any], base: str) -> dict[str, Any]:
    program = str(values.get("sagemaker_program") or "") or None
    parameters = {
        key: value for key, value in values.items() if key.startswith("sagemaker_") and key not in _OF_TOOLKIT
    }
    return {
        "user_entry_point": program,
        "module_name": program and program.removesuffix(".py"),
        "module_dir": values.get("sagemaker_submit_directory", f"{base}/code"),
        "log_level": values.get("sagemaker_container_log_level", 20),
        "framework_module": env.get("SAGEMAKER_TRAINING_MODULE"),
        "framework_params": parameters,
        "distribution_instance_groups": parameters.get("sagemaker_distribution_instance_groups", []),
    }


def gpu_count() -> int:
    return sum(1 for device in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", device.name))


def neuron_cores() -> int:
    if not any(re.fullmatch(r"neuron\d+", device.name) for device in Path("/dev").iterdir()):
        return 0
    with suppress(OSError, subprocess.SubprocessError, ValueError, TypeError, AttributeError):
        ask = ["neuron-ls", "-j"]
        listing = subprocess.run(ask, capture_output=True, timeout=30, check=True).stdout
        return sum(int(device.get("nc_count", 0)) for device in json.loads(listing))
    return 0


def as_json(text: str) -> Any:  # noqa: ANN401  any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_variable(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def as_argument(value: object) -> str:
    """Write a value as the toolkit writes it behind ``--name``."""
    if isinstance(value, dict):
        return ",".join(f"{key}={inner}" for key, inner in sorted(value.items()))
    return "" if value is None else str(value)


def is_of_script(name: str) -> bool:
    return not name.startswith("sagemaker_") and name not in _OF_TOOLKIT


def as_written(env: Mapping[str, str]) -> dict[str, str]:
    """Read the hyperparameters by name; a file that was written by hand may have numbers and lists."""
    written = sorted(read_json(Path(env["SM_INPUT_CONFIG_DIR"]) / "hyperparameters.json").items())
    return {key: text if isinstance(text, str) else json.dumps(text) for key, text in written}


def hyperparameters(env: Mapping[str, str]) -> dict[str, str]:
    """Decode the hyperparameters: the SDK v2 writes texts as quoted JSON.

    The rest stays as it was written.
    """
    texts = as_written(env).items()
    given = {key: json.loads(text) if _JSON_TEXT.fullmatch(text) else text for key, text in texts}
    for key, text in given.items():
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise LaunchError(
                f"hyperparameter {key} has a character that no program can be given: {text!a:.60}"
            )
    return given


def command(env: Mapping[str, str], source: Path) -> list[str]:
    """Make the command line. The SDK v2 names the script in a hyperparameter, v3 in a file.

    Else it is train.py.
    """
    given = hyperparameters(env)
    v3 = read_json(Path(env["SM_INPUT_CONFIG_DIR"]).parent / "data/sm_drivers/sourcecode.json")
    script = str(given.get("sagemaker_program") or v3.get("entry_script") or "train.py")
    if not script.endswith(".py"):
        raise LaunchError(f"{script} is no Python script; a shell in between would keep SIGTERM to itself")
    if not (source / script).is_file():
        raise LaunchError(f"there is no {script} in {source}; name the script as it is called in there")
    truths = {"true": "True", "false": "False"}  # as the toolkit passes them
    written = {key: truths.get(text, given[key]) for key, text in as_written(env).items()}
    own = {key: text for key, text in written.items() if is_of_script(key)}
    options = [word for key, text in own.items() for word in (f"{'--'[: len(key)]}{key}", text)]
    return [sys.executable, script, *options, *sys.argv[1:]]


class Stop:
    """Remembers SIGTERM and SIGINT from the moment it is made, and when a training plan's window closes."""

    def __init__(self) -> None:
        self._signalled_at = inf
        self.closes_at = inf  # seconds of the monotonic clock
        self.traces: Callable[[], None] = lambda: None  # asked for by SIGUSR2
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._ask)
        signal.signal(signal.SIGUSR2, self._hand_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})  # held by the bootstrap

    @property
    def asked_at(self) -> float:
        """Return when the ranks had to be asked to stop, in monotonic seconds; inf before that."""
        return min(self._signalled_at, self.closes_at if time.monotonic() >= self.closes_at else inf)

    @property
    def why(self) -> str:
        is_window = self.asked_at < self._signalled_at
        return "the window of the training plan closes" if is_window else "SIGTERM"

    def _ask(self, *_: object) -> None:
        self._signalled_at = min(self._signalled_at, time.monotonic())

    def _hand_on(self, *_: object) -> None:
        self.traces()


class Worker:
    """A process in a group of its own, so that Ctrl-C comes to it through the launcher alone."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], source: Path) -> None:
        self.name, self._tail = name, b""
        no, pipe = subprocess.DEVNULL, subprocess.PIPE
        self.child = subprocess.Popen(argv, env=env, cwd=source, stdin=no, stderr=pipe, process_group=0)
        self.pid = self.child.pid
        self.reader = threading.Thread(target=self._pass_on, daemon=True)
        self.reader.start()

    def said(self) -> str:
        return self._tail.decode(errors="replace")

    def _pass_on(self) -> None:
        while chunk := self.child.stderr.read1(_TAIL_BYTES):  # type: ignore[union-attr]  # a pipe
            sys.stderr.buffer.write(chunk)
            sys.stderr.buffer.flush()
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def failure(self) -> Outcome:
        """Describe the end by the line that names the last exception, else by the last line."""
        self.reader.join(timeout=1.0)  # no longer: what it has started may keep the pipe open
        code = self.child.returncode
        lines = [line for line in self.said().splitlines() if line.strip()]
        starts = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
        words = [line for line in lines[starts[-1] + 1 :] if line[0] != " "] if starts else lines[-1:]
        how = f"{self.name} exited with {code}"
        if code == -signal.SIGKILL:
            how, words = f"{self.name} was ended by SIGKILL", ["most likely the host ran out of memory"]
        elif code < 0:
            how = f"{self.name} was ended by signal {-code} ({signal.strsignal(-code)})"
        return Outcome(end=End.FAILED, why=": ".join([how, *words[:1]]), is_crash=code < 0)


def bury(workers: Sequence[Worker]) -> None:
    """Record which workers have ended, and reap the orphans that PID 1 inherits."""
    children = {worker.pid: worker.child for worker in workers}
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] in children:
                children[ended[0]].returncode = os.waitstatus_to_exitcode(ended[1])


def watch(
    workers: Sequence[Worker], stop: Stop, seconds: float, hang: Callable[[], str] = lambda: ""
) -> Outcome:
    """Wait until all workers have ended, and say how.

    ``seconds`` is how long they may take after a signal; ``hang`` says why they hang, or nothing.
    """
    deadline, failure, is_told = inf, None, False
    while True:
        bury(workers)
        now, is_stopped = time.monotonic(), stop.asked_at < inf
        # By exit code, the first rank of each; the key None says that some still run.
        gone = {worker.child.returncode: worker for worker in reversed(workers)}
        bad = gone.keys() - {None, 0, End.PREEMPTED, -signal.SIGTERM if is_stopped else 0}
        if failure is None and bad and now < deadline:
            # Of several that are gone at once, one that was killed is the cause; the others follow it.
            failure = gone[min(bad)].failure()
        if None not in gone:
            break
        if failure is None and not is_stopped and len(gone) == 1 and (why := hang()):
            failure = Outcome(end=End.FAILED, why=why)
        grace = min(_GRACE_SECONDS, seconds) if failure or -signal.SIGTERM in gone else inf
        deadline = min(deadline, now + grace, stop.asked_at + seconds)
        if now >= deadline or (not is_told and (failure or is_stopped)):
            is_told = True
            send(workers, signal.SIGKILL if now >= deadline else signal.SIGTERM)
        time.sleep(0.05)
    if failure or not (is_stopped or End.PREEMPTED in gone):
        return failure or Outcome(end=End.COMPLETED)
    late = f"; not all had ended {seconds:g} s later, and they were killed" * (-signal.SIGKILL in gone)
    return Outcome(end=End.PREEMPTED, why=stop.why + late)


def send(workers: Sequence[Worker], number: signal.Signals) -> None:
    """Signal those that run: SIGTERM is for the programs alone, SIGKILL for what they have started too."""
    for worker in running(workers):
        (os.killpg if number is signal.SIGKILL else os.kill)(worker.pid, number)


def running(workers: Sequence[Worker]) -> list[Worker]:
    """List the workers that run; the process number of one that has ended may be another's by now."""
    return [worker for worker in workers if worker.child.returncode is None]


def launch(env: Mapping[str, str], stop: Stop, source: Path) -> Outcome:
    """Start the command of the job on this host, and wait for its end."""
    if "GROUP_RANK" not in env:
        print(f"launcher: {env['SM_CURRENT_HOST']} is in no group that trains; nothing to do", flush=True)
        return Outcome(end=End.COMPLETED)
    argv, seconds = command(env, source), number(env, "LAUNCH_STOP_SECONDS", _STOP_SECONDS)
    if (source / "requirements.txt").is_file():
        install = [sys.executable, "-m", "pip", "install", "-r", "requirements.txt"]
        outcome = watch([Worker("pip install", install, env=env, source=source)], stop, seconds)
        if outcome.end is not End.COMPLETED:
            return outcome
    if (wait := hold_seconds(env, has_failed=False)) and stop.asked_at == inf:
        hold_open(env, stop, wait, then="training begins")
    if stop.asked_at < inf:
        return Outcome(end=End.PREEMPTED, why=f"{stop.why}, before training began")
    per_host = int(env["LOCAL_WORLD_SIZE"])
    first, size = int(env["GROUP_RANK"]) * per_host, env["WORLD_SIZE"]
    print(f"launcher: ranks {first} to {first + per_host - 1} of {size}: {' '.join(argv)}", flush=True)
    envs = [{**env, "RANK": str(first + local), "LOCAL_RANK": str(local)} for local in range(per_host)]
    if (dog := watchdog_beside()) is None:
        return watch(started(argv, envs, source), stop, seconds)
    with dog.Watchdog(envs) as watchdog:
        workers = started(argv, watchdog.envs, source)
        stop.traces = lambda: dog.hand_on(running(workers), signal.SIGUSR2)
        return watch(workers, stop, seconds, partial(watchdog.why, workers))


def started(argv: Sequence[str], envs: Sequence[Mapping[str, str]], source: Path) -> list[Worker]:
    workers = [Worker(f"rank {variables['RANK']}", argv, env=variables, source=source) for variables in envs]
    if envs[0].get("NPROC_PER_NODE") == "numa":
        keep_to_nodes([worker.pid for worker in workers])
    return workers


def status(env: Mapping[str, str]) -> tuple[Path | None, dict[str, Any]]:
    """Find and read status.json, on the first host alone, as all hosts' folders are mirrored to one place."""
    if env.get("GROUP_RANK") != "0":
        return None, {}
    path = Path(env["SM_CHECKPOINT_DIR"]) / "status.json"
    with suppress(LaunchError):  # of what is in S3 there is a copy in the folder that SageMaker mirrors
        options = {key.replace("-", "_"): text for key, text in hyperparameters(env).items()}
        given = options.get("checkpoint_dir", "s3://")
        path = path if "://" in given else Path(given) / "status.json"
    with suppress(LaunchError):
        return (path, read_json(path)) if path.parent.is_dir() else (None, {})
    return path, {}


def settle(outcome: Outcome, env: Mapping[str, str], before: Mapping[str, Any]) -> End:
    """Write the end into status.json unless the program has; the rest of it stays as the program wrote it."""
    path, now = status(env)
    if now != before and now.get("state") in {end.name.lower() for end in End}:
        is_done = outcome.end is End.PREEMPTED and now["state"] == "completed"  # before the signal counted
        return End.COMPLETED if is_done else outcome.end
    if path is not None:
        nothing = {"step": 0, "checkpoint": None, "checkpoint_at": None, "lost_steps": None}
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        end = {"state": outcome.end.name.lower(), "reason": outcome.why, "updated_at": at}
        with suppress(OSError):  # where nothing can be written the exit code still says it
            (draft := path.with_name(".status.json")).write_text(json.dumps(nothing | now | end, indent=1))
            draft.rename(path)
    return outcome.end


def write_failure(outcome: Outcome, output: Path) -> str:
    """Write the failure file, and return its text: the program's own words come first, except after a crash.

    A crashed worker could not say why, so what other workers wrote comes second then.
    """
    path = output / "failure"
    text = path.read_text(errors="replace") if path.is_file() else ""
    why = f"{outcome.why}; then: {text}" if text and outcome.is_crash else text or outcome.why
    output.mkdir(parents=True, exist_ok=True)
    path.write_text(why := why[:_FAILURE_CHARACTERS])
    return why


def main(given: Mapping[str, str]) -> int:
    """Run this host's part of the job, and return the exit code."""
    stop, before = Stop(), dict[str, Any]()
    env = {"SM_OUTPUT_DIR": given.get("SAGEMAKER_BASE_DIR", "/opt/ml") + "/output"} | dict(given)
    try:
        env = environment(env)
        _, before = status(env)
        left, warning = window_seconds(env, time.time())
        stop.closes_at = time.monotonic() + left
        if warning or left < inf:
            print(
                f"launcher: {warning or f'a training plan: stops in {left:.0f} s at the latest'}", flush=True
            )
        outcome = launch(env, stop, Path(__file__).resolve().parent)
    except LaunchError as error:
        outcome = Outcome(end=End.FAILED, why=str(error))
    except Exception as error:  # noqa: BLE001  the bulkhead: whatever happened, SageMaker gets to know why
        traceback.print_exc()
        outcome = Outcome(end=End.FAILED, why=f"{type(error).__name__}: {error}")
    if outcome.end is End.FAILED:
        outcome = replace(outcome, why=write_failure(outcome, Path(env["SM_OUTPUT_DIR"])))
    end = settle(outcome, env, before)
    print(f"launcher: {end.name.lower()} {outcome.why}", flush=True)
    if end is End.FAILED and (wait := hold_seconds(env, has_failed=True)):
        hold_open(env, stop, wait, then="the job ends")
    return end


if __name__ == "__main__":
    sys.exit(main(os.environ))
