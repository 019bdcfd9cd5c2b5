"""Train on 2, 4, 1 and 4 instances in turn, with the losses of an undisturbed run: ``make demo-elastic``.

A pool of four instances has one elastic job of the real training program. It starts on the two that are
free, grows when the others are, gives three up to somebody more urgent, and grows again. The same training
runs beside the twin on one rank without a pause, and both are compared.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.report import Report

from demos.stage.command import Telling, run
from demos.stage.courses import most_at_once
from demos.stage.directions import Hold
from demos.stage.evidence import Document
from demos.stage.job_requests import Job, one_pool
from demos.stage.processes import ROOT, Program
from demos.stage.trained_steps import losses_in, newest_step, samples_in
from demos.stage.training_archive import training_archive
from demos.stage.twin_stage import Stage, opened_stage, temporary_folder
from tools.training.writer import Layout, Part, ShardWriter, empty_corpus
from training.data.index import TokenDtype
from training.metrics import event_in

JOB, OTHERS, URGENT = "elastic", "others", "urgent"
CAPACITY = 4
WIDTHS = (2, 4, 1, 4)
"""Instances of each attempt of the story."""
UNTIL = (7, 13, 22, 32)
"""The last step that each attempt trains; all but the last are in the middle of an epoch."""
STEPS = UNTIL[-1]
BATCH, SEQUENCES, LENGTH = 4, 32, 32
TOLERANCE = 1e-6
"""Losses in fp32 may differ by this much: sums over other ranks are taken in another order."""
_ALL_STEPS = 20_000
"""Steps of the whole job, 5.6 hours on four instances, so that growing pays; the story has the first few."""
_SNOOZE = timedelta(minutes=30)
"""Time after a change within which a job does not grow (the policy's default)."""
_BEFORE = timedelta(seconds=5)
"""Time before the end of the snooze from which on the clock goes in the short steps that a stop needs."""
_SAMPLE_SECONDS = 1.0
"""Pace of a rank, as if each instance had a device of its own: a step takes 4 s on one and 1 s on four."""
_OPTIONS = {
    "preset": "tiny",
    "steps": str(_ALL_STEPS),
    "seed": "7",
    "batch_size": str(BATCH),
    "sequence_length": str(LENGTH),
    "lr": "3e-4",
    "precision": "fp32",
    "min_sample_seconds": str(_SAMPLE_SECONDS),
    "checkpoint_every": "5",
    "export": "false",
    "sagemaker_program": "train.py",
}


def tell(telling: Telling) -> int:
    report = telling.report
    with temporary_folder() as folder:
        data = corpus(folder / "corpus")
        with (
            opened_stage(telling, one_pool(CAPACITY), pool="one pool, four instances") as stage,
            _undisturbed(data, folder) as alone,
        ):
            scene = _Scene(stage, data)
            scene.start()
            scene.grow()
            scene.shrink()
            scene.grow_again()
            stage.vigil.evidence.append(alone.printed_bytes)
            stage.until(
                "the undisturbed run is as far",
                lambda: _has_reached(alone, folder / "metrics"),
                moves_clock=False,
            )
            report.facts |= scene.facts() | {"undisturbed": losses_in(folder / "metrics")}
    check(report)
    return telling.finish()


def corpus(place: Path) -> Path:
    """Write the tokens of a few sequences, so that an epoch has few steps."""
    tokens = bytes(token * 37 % 251 for token in range(SEQUENCES * LENGTH + 1))
    layout = Layout(dtype=TokenDtype.UINT16, vocabulary=256, shard_tokens=len(tokens))
    writer = ShardWriter(empty_corpus(place), layout)
    writer.write(Part(tokens=b"".join(token.to_bytes(2, "little") for token in tokens)))
    writer.publish()
    return place


@contextmanager
def _undisturbed(data: Path, folder: Path) -> Iterator[Program]:
    """Run the same training outside of the twin, on one rank, up to the last step of the story."""
    hold = Hold(folder, "undisturbed")
    hold.at(STEPS)
    own = {
        "data": data,
        "min_sample_seconds": 0,
        "hold_file": hold.path,
        "metrics_file": folder / "metrics",
        "checkpoint_dir": folder / "checkpoints",
        "model_dir": folder / "model",
    }
    command = [sys.executable, "train.py", *(f"--{name}={value}" for name, value in (_OPTIONS | own).items())]
    log, env = folder / "undisturbed.log", {"OMP_NUM_THREADS": "1"}
    with Program("the undisturbed run", command, log=log, env=env, cwd=ROOT / "training") as program:
        yield program


def _has_reached(program: Program, metrics: Path) -> bool:
    """Tell whether it has trained the steps of the story. Raises ProgramEndedError."""
    program.check()
    return newest_step(metrics) >= STEPS


class _Scene:
    def __init__(self, stage: Stage, data: Path) -> None:
        self._stage, self._say = stage, stage.screen.say
        self._hold = Hold(stage.folder, JOB)
        self._data = data
        self._metrics, self._samples = stage.folder / "metrics", stage.folder / "samples"
        stage.guard_training([JOB])

    def start(self) -> None:
        """Start the job while two of four instances are taken: it takes the other two."""
        stage = self._stage
        bucket = str(stage.twin.ready["bucket"])
        archive = training_archive()
        stage.client("s3").put_object(Bucket=bucket, Key="code/train.tar.gz", Body=archive)
        stage.occupy(OTHERS, CAPACITY - WIDTHS[0])
        stage.until("two instances are taken", lambda: stage.are({"running"}, [OTHERS]))
        self._hold.at(0)
        stage.submit(self._job())
        self._train(0)

    def grow(self) -> None:
        """Free the other two instances: the job stops and starts again with all four."""
        self._stage.api.cancel(OTHERS)
        self._say("The other two instances are free now, and nobody waits for them.")
        self._train(1)

    def shrink(self) -> None:
        """Submit an urgent job of three instances: the elastic one keeps the fourth, and trains on."""
        stage = self._stage
        self._say("Somebody has something urgent for three instances.")
        stage.occupy(URGENT, CAPACITY - WIDTHS[2])
        stage.until("both run side by side", lambda: stage.are({"running"}, [JOB, URGENT]))
        self._train(2)

    def grow_again(self) -> None:
        """End the urgent job: when the snooze is over, the elastic job has all four instances again."""
        stage = self._stage
        stage.api.cancel(URGENT)
        stage.until("the urgent job is gone", lambda: stage.are({"stopped"}, [URGENT]))
        # It cannot grow before, so nothing has to leave in this leap.
        [*_, shrink] = [line for line in stage.views[JOB]["history"] if line["to"] == "preempting"]
        wakes_at = datetime.fromisoformat(shrink["at"]) + _SNOOZE - _BEFORE
        now = datetime.fromisoformat(str(stage.control("POST", "/clock", advance_seconds=0)["clock"]))
        stage.clock((wakes_at - now) / timedelta(minutes=1))
        self._train(3)
        self._say(f"It has trained {STEPS} steps; the rest of {_ALL_STEPS:,} is left out.")
        stage.guard = lambda: None
        stage.api.cancel(JOB)
        stage.until("the job is gone", lambda: stage.are({"stopped"}, [JOB]))

    def _train(self, number: int) -> None:
        """Let an attempt begin, and train up to the step where the story stops it."""
        stage, until = self._stage, UNTIL[number]
        begins = lambda: self._attempts() > number and stage.are({"running"}, [JOB])  # noqa: E731
        stage.until(f"attempt {number} runs", begins)
        self._hold.at(until)
        stage.until(f"it has trained {until} steps", lambda: newest_step(self._metrics) >= until)
        self._say(f"It has trained {until} steps, now on {WIDTHS[number]} of {CAPACITY} instances.")

    def _attempts(self) -> int:
        return len(self._stage.views.get(JOB, {}).get("attempts", []))

    def _job(self) -> Job:
        stage = self._stage
        own = {
            "data": str(self._data),
            "hold_file": str(self._hold.path),
            "metrics_file": str(self._metrics),
            "samples_file": str(self._samples),
            "sagemaker_submit_directory": f"s3://{stage.twin.ready['bucket']}/code/train.tar.gz",
        }
        return Job(
            name=JOB,
            command=LAUNCHER,
            instances=CAPACITY,
            hyperparameters=_OPTIONS | own,
            environment={"OMP_NUM_THREADS": "1"},
            tags={"trainmaster:elastic": " ".join(map(str, sorted(set(WIDTHS))))},
            max_runtime_seconds=8 * 3600,
        )

    def facts(self) -> Document:
        stage = self._stage
        attempts = stage.attempts(JOB, _world_of)
        for attempt in attempts:
            described = stage.described(attempt["training_job_name"])
            attempt["instances"] = described["ResourceConfig"]["InstanceCount"]
        job = stage.api.job(JOB, estimate=False)
        return {
            "attempts": attempts,
            "losses": losses_in(self._metrics),
            "samples": samples_in(self._samples),
            "reasons": [line["reason"]["code"] for line in job["history"] if line["reason"]],
            "preemptions": job["preemptions"],
            "most_at_once": most_at_once(stage.twin.records()),
        }


def _world_of(lines: Sequence[str]) -> Document:
    """Return how many ranks an attempt had, and the step from which it resumed."""
    events = [event for line in lines if (event := event_in(line))]
    ranks = [event["ranks"] for event in events if event["kind"] == "world"]
    resumed = [event["step"] for event in events if event["kind"] == "resume"]
    return {"ranks": next(iter(ranks), None), "resumed_from": next(iter(resumed), 0)}


def check(report: Report) -> None:
    """Check what the demo must have shown, from its facts alone."""
    facts = report.facts
    attempts = facts["attempts"]
    report.check("widths", expected=[*WIDTHS], actual=[attempt["instances"] for attempt in attempts])
    report.check("ranks", expected=[*WIDTHS], actual=[attempt["ranks"] for attempt in attempts])
    changes = [code for code in facts["reasons"] if code in {"grow", "shrink"}]
    in_order = [code for code, after in pairwise([*changes, ""]) if code != after]
    report.check("causes", expected=["grow", "shrink", "grow"], actual=in_order)
    report.check("not-a-preemption", expected=0, actual=facts["preemptions"])
    report.check(
        "never-more-than-there-is",
        expected=f"at most {CAPACITY} instances at any instant",
        actual=f"{facts['most_at_once']} instances",
        ok=facts["most_at_once"] <= CAPACITY,
    )
    resumed = [attempt["resumed_from"] for attempt in attempts]
    report.check("no-step-lost", expected=[0, *UNTIL[:-1]], actual=resumed)
    _check_losses(report)
    _check_samples(report)


def _check_losses(report: Report) -> None:
    """Check that each step was trained once, at its width, with the loss of the undisturbed run."""
    losses, alone = report.facts["losses"], report.facts["undisturbed"]
    order = [[step, width] for step, width, _ in losses]
    firsts = [1, *(last + 1 for last in UNTIL[:-1])]
    expected = [
        [step, width]
        for width, first, last in zip(WIDTHS, firsts, UNTIL, strict=True)
        for step in range(first, last + 1)
    ]
    report.check("each-step-once", expected=expected, actual=order)
    others = {step: loss for step, _, loss in alone}
    apart: Callable[[int, float], float] = lambda step, loss: abs(loss - others.get(step, float("inf")))  # noqa: E731
    largest = max((apart(step, loss) for step, _, loss in losses), default=float("inf"))
    report.facts["largest_difference"] = largest
    report.check(
        "same-losses",
        expected=f"{STEPS} losses, each within {TOLERANCE:.0e} of those on one undisturbed rank",
        actual=f"{len(losses)} losses, the largest difference is {largest:.1e}",
        ok=len(losses) == STEPS and largest <= TOLERANCE,
    )


def _check_samples(report: Report) -> None:
    """Check that each epoch saw each sample once, over all attempts and ranks."""
    epochs: dict[int, Counter[int]] = {}
    for step, samples in report.facts["samples"].items():
        epochs.setdefault((int(step) - 1) * BATCH // SEQUENCES, Counter()).update(samples)
    wrong = {epoch: seen for epoch, seen in epochs.items() if seen != Counter(range(SEQUENCES))}
    count = STEPS * BATCH // SEQUENCES
    report.check(
        "each-sample-once",
        expected=f"{count} epochs of {SEQUENCES} samples, each once",
        actual=f"{len(epochs)} epochs, {len(wrong)} of them otherwise",
        ok=len(epochs) == count and not wrong,
    )


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="elastic"))
