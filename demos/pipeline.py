"""Prepare data, sweep over six settings, run the failed one again, evaluate the best: ``make demo-pipeline``.

Each step is a job of the real training program and tools. The sweep is queued at once and waits for the data;
one of its tasks is failed while it trains, and its rerun resumes from the checkpoint of the same index.
"""

import math
from collections.abc import Iterable, Mapping
from functools import partial

from trainmaster_client.hooks.array_results import ArrayResults, TaskResult, read_results
from trainmaster_client.jobs.array_requests import TaskSelection, array_body
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.report import Report

from demos.stage.command import Telling, run
from demos.stage.directions import Hold
from demos.stage.evidence import Document, losses_of, resumed_from
from demos.stage.job_requests import Job, checkpoints, one_pool
from demos.stage.processes import ROOT
from demos.stage.training_archive import training_archive
from demos.stage.twin_stage import FINAL, Stage, opened_stage
from training.metrics import METRIC_DEFINITIONS, metrics_in, validation_in

CAPACITY, AT_MOST = 3, 2
PREPARE, SWEEP, EVALUATE = "prepare", "sweep", "evaluate"
VALUES = [{"lr": rate, "seed": seed} for rate in ("3e-3", "1e-3", "3e-5") for seed in ("1", "2")]
FAILING = 3
"""Index of the task that is failed while it trains."""
STEPS, CHECKPOINT_EVERY, FAILED_AT = 12, 4, 6
METRIC = "validation:loss"
_TEXTS = ("faq.md", "glossary.md", "policy.md", "twin.md", "recipes.md")
_DATA = {"data": "channel:train", "eval_data": "channel:validation"}
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
_OPTIONS = {
    "preset": "tiny",
    "sequence_length": "64",
    "steps": str(STEPS),
    "batch_size": "4",
    "warmup_steps": "1",
    "checkpoint_every": str(CHECKPOINT_EVERY),
    "eval_every": "1000",
    "eval_batches": "8",
    **_DATA,
}


def tell(telling: Telling) -> int:
    report = telling.report
    pool = f"one pool with {CAPACITY} instances"
    with opened_stage(telling, one_pool(CAPACITY), pool=pool) as stage:
        scene = _Scene(stage)
        scene.queue()
        scene.sweep()
        again = scene.rerun()
        best = scene.evaluate(again)
        report.facts |= scene.facts(again, best)
    check(report)
    return telling.finish()


class _Scene:
    def __init__(self, stage: Stage) -> None:
        self._stage, self._api, self._say = stage, stage.api, stage.screen.say
        self._hold = Hold(stage.folder, SWEEP)
        self._bucket = str(stage.twin.ready["bucket"])
        stage.guard_training([PREPARE, EVALUATE])

    def queue(self) -> None:
        """Queue the preparation and, at once, the sweep that waits for it."""
        store, texts = self._stage.client("s3"), ROOT / "docs"
        for name in _TEXTS:
            if (texts / name).is_file():
                store.upload_file(str(texts / name), self._bucket, f"texts/{name}")
        for archive, tools in (("tools", True), ("train", False)):
            store.put_object(
                Bucket=self._bucket, Key=f"code/{archive}.tar.gz", Body=training_archive(tools=tools)
            )
        self._stage.api.add_job(self._prepare())
        self._stage.name(PREPARE, PREPARE)
        values = [{**row, "hold_file": self._gate(index)} for index, row in enumerate(VALUES)]
        self._hold.at(FAILED_AT)
        selection = TaskSelection(values=values, at_most=AT_MOST, after=PREPARE)
        answer = self._api.add_array(array_body(self._training(SWEEP), selection), key=SWEEP)
        self._say(f"  {SWEEP}: {len(VALUES)} tasks, at most {AT_MOST} at once, after {PREPARE}")
        self.queued = answer["array"]
        for index in range(len(VALUES)):
            self._stage.name(f"{SWEEP}-{index}", f"{SWEEP}-{index}")

    def sweep(self) -> None:
        """Let the sweep run to its end, and fail one task while it trains."""
        stage, task = self._stage, f"{SWEEP}-{FAILING}"
        stage.until("the data is prepared", lambda: stage.state(PREPARE) == "completed")
        stage.until(f"{task} has trained {FAILED_AT} steps", lambda: self._trained(task) >= FAILED_AT)
        self._say(f"{task} has trained {FAILED_AT} steps. Its program fails.")
        self._training_job = stage.attempt(task)
        reason = "AlgorithmError: a device was lost, exit code: 1"
        stage.control("POST", "/fail", training_job=self._training_job, reason=reason, exit_code=1)
        stage.until("all tasks of the sweep have ended", partial(self._has_ended, SWEEP))
        self.swept = self._api.array(SWEEP)
        self._say(f"The sweep is over: {self.swept['failed']} failed.")

    def rerun(self) -> str:
        """Run the failed task again as an array of its own; return its name."""
        self._hold.release()
        again = str(self._api.rerun_array(SWEEP, {"tasks": "failed"})["array"]["name"])
        self._say(f"  {again}: the failed task again, with its values and from its checkpoint")
        self._stage.name(f"{again}-{FAILING}", f"{again}-{FAILING}")
        self._stage.until("the failed task was run again", partial(self._has_ended, again))
        return again

    def evaluate(self, again: str) -> TaskResult:
        """Evaluate the task with the smallest loss, on all of the validation share."""
        results = [row for name in (SWEEP, again) for row in self._results(name).rows]
        whole = ArrayResults(name=SWEEP, rows=tuple(results))
        best = whole.best_first(METRIC).rows[0]
        self._say(f"The best is {best.task.name}, lr {best.task.values['lr']}: loss {best.metrics[METRIC]}")
        self._api.add_job(self._evaluation(best.task.name))
        self._stage.name(EVALUATE, EVALUATE)
        self._stage.until("the best was evaluated", lambda: self._stage.state(EVALUATE) == "completed")
        return best

    def facts(self, again: str, best: TaskResult) -> Document:
        tasks = [*self._results(SWEEP).rows, *self._results(again).rows]
        lines = self._stage.lines(f"{again}-{FAILING}")
        folder = checkpoints(SWEEP, self._stage.twin.ready)
        return {
            "queued": {"state": self.queued["state"], "waiting": self.queued.get("waiting")},
            "swept": {"state": self.swept["state"], "failed": self.swept["failed"]},
            "tasks": [self._task(row) for row in tasks],
            "rerun": {
                "array": again,
                "state": self._api.array(again)["state"],
                "resumed_from": resumed_from(lines, f"{folder}/{FAILING}"),
            },
            "most_at_once": most_at_once(self._stage.twin.records(), SWEEP),
            "best": {"task": best.task.name, "loss": best.metrics[METRIC]},
            "evaluated": _validation(self._stage.lines(self._stage.attempt(EVALUATE))),
        }

    def _task(self, row: TaskResult) -> Document:
        lines = self._stage.lines(row.task.name)
        rates = [float(metrics["lr"]) for line in lines if (metrics := metrics_in(line))]
        return {
            "task": row.task.name,
            "index": row.task.index,
            "state": row.task.state,
            "values": {name: text for name, text in row.task.values.items() if name != "hold_file"},
            "highest_lr": max(rates, default=None),
            "loss": row.metrics.get(METRIC),
            "printed": _validation(lines),
        }

    def _results(self, name: str) -> ArrayResults:
        return read_results(self._api, name, make_client=lambda: self._stage.sagemaker)

    def _has_ended(self, array: str) -> bool:
        return self._api.array(array)["state"] in FINAL

    def _trained(self, task: str) -> int:
        losses = losses_of(self._stage.lines(self._stage.attempt(task)))
        return losses[-1][0] if losses else 0

    def _gate(self, index: int) -> str:
        """Name the file that holds a task; those of the others are never made."""
        return str(self._hold.path if index == FAILING else self._hold.path.with_suffix(".free"))

    def _prepare(self) -> Document:
        options = {
            "input": "channel:raw",
            "output": "/opt/ml/checkpoints/corpus",
            "validation_share": "0.1",
            **self._program("tools", "tools/training/prepare.py"),
        }
        job = Job(name=PREPARE, command=LAUNCHER, hyperparameters=options, environment=_ONE_THREAD)
        channel = _channel("raw", f"s3://{self._bucket}/texts/")
        return job.request(self._stage.twin.ready) | {"InputDataConfig": [channel]}

    def _training(self, name: str, **options: str) -> Document:
        """Ask for a training on the prepared corpus, whose weights are left uncompressed."""
        own = {**_OPTIONS, "lr": "1e-3", "seed": "0", "hold_file": self._gate(-1), **options}
        whole = own | self._program("train", "train.py")
        job = Job(name=name, command=LAUNCHER, hyperparameters=whole, environment=_ONE_THREAD)
        request = job.request(self._stage.twin.ready)
        corpus = f"{checkpoints(PREPARE, self._stage.twin.ready)}/corpus"
        shares = [_channel(share, f"{corpus}/{share}/") for share in ("train", "validation")]
        algorithm = {**request["AlgorithmSpecification"], "MetricDefinitions": METRIC_DEFINITIONS}
        output = {**request["OutputDataConfig"], "CompressionType": "NONE"}
        own_fields = {"AlgorithmSpecification": algorithm, "OutputDataConfig": output}
        return request | own_fields | {"InputDataConfig": shares}

    def _evaluation(self, best: str) -> Document:
        """Ask for one step without learning from the best task's weights, and an evaluation of it."""
        request = self._training(EVALUATE, init_from="channel:model", lr="0", steps="1", eval_batches="0")
        weights = _channel("model", f"s3://{self._bucket}/output/{best}/output/model/")
        tags = [*request["Tags"], {"Key": "trainmaster:after", "Value": best}]
        return request | {"InputDataConfig": [*request["InputDataConfig"], weights], "Tags": tags}

    def _program(self, archive: str, program: str) -> dict[str, str]:
        where = f"s3://{self._bucket}/code/{archive}.tar.gz"
        return {"sagemaker_program": program, "sagemaker_submit_directory": where}


def _channel(name: str, uri: str) -> Document:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def _validation(lines: Iterable[str]) -> float | None:
    """Return the last loss on the validation share; None if the log has none."""
    validations = [validation for line in lines if (validation := validation_in(line))]
    return float(validations[-1]["val_loss"]) if validations else None


def most_at_once(records: Iterable[Mapping[str, object]], array: str) -> int:
    """Return the most tasks of an array whose processes ran at one time, by the twin's journal."""
    running: set[object] = set()
    most = 0
    for record in records:
        if record.get("kind") != "process" or not str(record.get("training_job")).startswith(f"{array}-"):
            continue
        if record.get("event") == "exit":
            running.discard(record["training_job"])
        else:
            running.add(record["training_job"])
        most = max(most, len(running))
    return most


def check(report: Report) -> None:
    """Check what the demo must have shown, from its facts alone."""
    facts = report.facts
    waiting = facts["queued"]["waiting"] or {}
    report.check("queued-behind-its-data", expected="dependency", actual=waiting.get("code"))
    report.check("one-task-failed", expected=["failed", str(FAILING)], actual=[*facts["swept"].values()])
    report.check("throttle", expected=AT_MOST, actual=facts["most_at_once"])
    report.check("rerun", expected="completed", actual=facts["rerun"]["state"])
    resumed = facts["rerun"]["resumed_from"] or {}
    report.check(
        "rerun-resumed",
        expected=f"from a checkpoint of step {CHECKPOINT_EVERY} to {FAILED_AT}",
        actual=resumed.get("step"),
        ok=CHECKPOINT_EVERY <= resumed.get("step", 0) <= FAILED_AT,
    )
    completed = [task for task in facts["tasks"] if task["state"] == "completed"]
    report.check("every-setting-completed", expected=len(VALUES), actual=len(completed))
    wrong = [task["task"] for task in completed if not _has_rate(task, facts["tasks"])]
    report.check("values-arrived", expected=[], actual=wrong)
    different = [task["task"] for task in completed if not _is_near(task["loss"], task["printed"], 1e-6)]
    report.check("results-are-what-was-printed", expected=[], actual=different)
    best = min((task["loss"] for task in completed if task["loss"] is not None), default=None)
    report.check("best", expected=best, actual=facts["best"]["loss"])
    report.check(
        "evaluated",
        expected="a loss near that of the sweep's own evaluation",
        actual=facts["evaluated"],
        ok=_is_near(facts["evaluated"], best, 0.1),
    )


def _has_rate(task: Document, tasks: Iterable[Document]) -> bool:
    """Tell whether a setting was trained with its learning rate, which its first attempt has reached."""
    rates = [other["highest_lr"] or 0.0 for other in tasks if other["index"] == task["index"]]
    return _is_near(max(rates), float(task["values"]["lr"]), 1e-2)


def _is_near(number: float | None, other: float | None, tolerance: float) -> bool:
    return number is not None and other is not None and math.isclose(number, other, rel_tol=tolerance)


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="pipeline"))
