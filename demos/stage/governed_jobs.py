"""The jobs of the governance demo, and the policy that they run under."""

from demos.stage.evidence import Document
from demos.stage.job_requests import GPU_IMAGE, Job

MANY_GPUS, ONE_GPU = "ml.g5.12xlarge", "ml.g5.xlarge"
IDLE_MINUTES, UNDERUSED_MINUTES, WARN_MINUTES = 15, 30, 10
IDLE_WITHIN = ((IDLE_MINUTES - 1, IDLE_MINUTES + 3), (WARN_MINUTES, WARN_MINUTES + 2))
"""Least and most minutes from the trouble to the warning, from there to the stop; half a minute counts."""
UNDERUSED_WITHIN = ((UNDERUSED_MINUTES - 5, UNDERUSED_MINUTES + 7), (WARN_MINUTES, WARN_MINUTES + 2))
"""The same; this alarm has periods of five minutes, and the one in which a host stalls may count."""
LOSS_WITHIN = ((0, 7), (WARN_MINUTES, WARN_MINUTES + 7))
"""The same, from the line in the log: each log has its turn every five minutes."""
MIN_RUNTIME_HOURS, MAX_INTERRUPTIONS = 2, 3
LOSS = "train:loss"
_DAY_SECONDS = 86_400
_REQUIRED: Document = {"mode": "enforce", "tags": {"model_name": {}}}
RULES: Document = {"required_tags": _REQUIRED, "max_runtime": "3d"}
POLICY: Document = {
    "version": 1,
    "pools": [{"name": "gpu", "capacity": {MANY_GPUS: 6, ONE_GPU: 3}, "spot_capacity": {ONE_GPU: 1}}],
    "rules": RULES,
    "unmanaged_jobs": {"then": "adopt"},
    "idle": {
        "gpu_below_percent": 1,
        "for": f"{IDLE_MINUTES}m",
        "period": "5m",
        "then": "stop",
        "warn_first": f"{WARN_MINUTES}m",
    },
    "utilization": {
        "gpu_below_percent": 80,
        "for": f"{UNDERUSED_MINUTES}m",
        "then": "requeue",
        "warn_first": f"{WARN_MINUTES}m",
    },
    "loss": {"metric": LOSS, "non_finite": "stop", "warn_first": f"{WARN_MINUTES}m"},
    "recovery": {"min_runtime": f"{MIN_RUNTIME_HOURS}h"},
    "spot": {"max_interruptions": MAX_INTERRUPTIONS},
}
WITHOUT_POOLS: Document = {"version": 1, "rules": RULES, "unmanaged_jobs": {"then": "stop"}}

UNTAGGED, PLAIN, STALLED, BUSY = "untagged", "plain", "stalled", "busy"
ONE_HOST_BUSY, DIVERGED, BUG, SPOT, LATE = "one-host-busy", "diverged", "bug", "spot", "untagged-late"
SUBMITTED = (STALLED, BUSY, ONE_HOST_BUSY, DIVERGED, BUG, SPOT)
"""Jobs that go through the queue."""
GOVERNED = (PLAIN, *SUBMITTED)  # what ends up in the ledger
_FAULTY = ["python", "-c", "settings = {}; print(settings['learning_rate'])"]
_MANY_GPUS, _TWO_HOSTS = {"instance_type": MANY_GPUS}, {"instance_type": MANY_GPUS, "instances": 2}
JOBS: dict[str, Document] = {
    UNTAGGED: {"tags": {}, "max_runtime_seconds": 4 * _DAY_SECONDS},
    PLAIN: _TWO_HOSTS,
    STALLED: _MANY_GPUS,
    BUSY: _MANY_GPUS,
    ONE_HOST_BUSY: _TWO_HOSTS,
    DIVERGED: {"metrics": {LOSS: "loss=([0-9.]+)"}},
    BUG: {"command": _FAULTY},
    SPOT: {"is_spot": True},
    LATE: {"tags": {}},
}
"""Settings that a job has of its own; the other jobs have one GPU, a tag, and wait for orders."""


def governed_job(name: str, *, command: list[str]) -> Job:
    """Make a job of the demo.

    Args:
        name: Key of ``JOBS``.
        command: What it runs, unless it has a command of its own.
    """
    usual: Document = {"command": command, "instance_type": ONE_GPU, "tags": {"model_name": "tiny"}}
    usual |= {"image": GPU_IMAGE, "max_runtime_seconds": _DAY_SECONDS}
    return Job(name=name, **(usual | JOBS[name]))
