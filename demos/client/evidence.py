"""Gathers what happened at one door, from the queue and from its user's program."""

import re
from collections.abc import Iterable

from demos.client.programs import Program
from demos.stage.evidence import Document
from training.metrics import metrics_in

_RESUMED = re.compile(r"resumed from step=(\d+) file=(\S+) sha256=([0-9a-f]{64})")
_CALLS = frozenset({"CreateTrainingJob", "StopTrainingJob", "POST /add-job"})


def door(program: Program, job: Document, written: Iterable[str]) -> Document:
    """Return one entry of ``facts.doors``.

    Args:
        program: Ended.
        job: The answer of GET /jobs/{name}.
        written: Every line of its attempts' logs, in order.
    """
    output = program.output().splitlines()
    shown = [line for line in output if _step(line) is not None]
    seen = program.seen()
    return {
        "door": program.door.name,
        "sdk_version": seen.get("sdk_version"),
        "exit_code": program.exit_code,
        "job": job["name"],
        "attempts": job["attempts"],
        "log_lines": shown,
        "log_lines_written": [line for line in written if _step(line) is not None],
        "resumed_from": _resumed(output, program.checkpoints),
        "model_artifacts": seen.get("model_artifacts"),
        "describe_statuses": seen.get("describe_statuses", []),
        "output": output,
    }


def steps(lines: Iterable[str]) -> list[int]:
    """Return the steps that lines of metrics are about."""
    return [step for line in lines if (step := _step(line)) is not None]


def _step(line: str) -> int | None:
    """Return the step of a metric line, wherever in the line it begins; None for another line."""
    _, begins, rest = line.partition("metric step=")
    metrics = metrics_in(f"{begins}{rest}")
    return int(metrics["step"]) if metrics else None


def _resumed(output: Iterable[str], checkpoints: str) -> Document | None:
    """Return what the user could read of the checkpoint that a later attempt began with."""
    resumed = next((resumed for line in output if (resumed := _RESUMED.search(line))), None)
    if resumed is None:
        return None
    return {"s3_uri": f"{checkpoints}/{resumed[2]}", "step": int(resumed[1]), "sha256_read": resumed[3]}


def calls(journal: Iterable[Document]) -> list[Document]:
    """Return the calls that started and stopped jobs, in the order of the twin's journal."""
    wanted = ("seq", "at", "principal", "service", "operation", "status", "error_code")
    return [
        {key: record[key] for key in wanted}
        | {"training_job": (record["params"] or {}).get("TrainingJobName")}
        for record in journal
        if record["kind"] == "call" and record["operation"] in _CALLS
    ]
