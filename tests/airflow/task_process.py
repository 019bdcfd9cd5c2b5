"""A worker or a triggerer for one task: ``python -m tests.airflow.task_process FOLDER ACT``.

The folder has ``task.json``: the operator's class and its arguments. ``execute`` leaves ``xcom.json``, or
``trigger.json`` where the task is deferred; ``trigger`` runs that to its ``event.json``; ``resume`` is what
the worker does then.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.exceptions import TaskDeferred
from airflow.utils.module_loading import import_string


def main(folder: Path, act: str) -> None:
    if act == "trigger":
        classpath, arguments = _read(folder / "trigger.json")
        _write(folder / "event.json", asyncio.run(first_event(import_string(classpath)(**arguments))))
        return
    task = _read(folder / "task.json")
    if task["operator"] == "hook":
        _write(folder / "xcom.json", of_the_hook(**task["arguments"]))
        return
    context = {"ti": SimpleNamespace(**task["task_instance"])}
    operator = import_string(task["operator"])(task_id="train", **task["arguments"])
    try:
        if act == "execute":
            _write(folder / "xcom.json", operator.execute(context=context))
        else:
            _write(
                folder / "xcom.json",
                operator.execute_complete(context=context, event=_read(folder / "event.json")),
            )
    except TaskDeferred as deferred:
        _write(folder / "trigger.json", deferred.trigger.serialize())


def of_the_hook(**arguments: Any) -> Any:
    """What it says of the job at its end."""
    from airflow.providers.amazon.aws.hooks.sagemaker import SageMakerHook  # noqa: PLC0415  this task alone needs it

    hook = SageMakerHook(aws_conn_id="aws_default")
    hook.create_training_job(**arguments)
    return {"Training": hook.describe_training_job(arguments["config"]["TrainingJobName"])}


async def first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("the trigger ended without an event")


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _write(path: Path, document: Any) -> None:
    """At once: somebody waits for the file."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(document, default=str), "utf-8")
    beside.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
