"""What the proof proves, and that it finds out what it must not let through: the real program."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.report import Report

from benchmarks.training.proof.evidence import TOLERANCE, check
from benchmarks.training.proof.jobs import Attempt, Job
from benchmarks.training.proof.kill_schedule import Schedule
from benchmarks.training.proof.proving import Proof, Run, facts_of, runs_of
from benchmarks.training.proof.spoil import hashes_of

_PROGRAMS = Path(__file__).parent / "programs"
_STEPS = 12
_TIMED = {"tok_s", "tok_s_gpu", "tflops_gpu", "step_ms", "data_ms", "mem_gib", "ckpt_stall_ms", "goodput"}
"""What a metric line says about its attempt, not about what is trained."""


class Story:
    """A training in fp32 that is stopped at random steps, beside the one that is not."""

    def __init__(self, root: Path, *, stops: int, ranks: int) -> None:
        draw = random.SystemRandom()
        # Far enough apart, and from the end, that each attempt trains and none is done before it can stop.
        steps = [draw.randrange(2, 5), draw.randrange(7, 10)][:stops]
        self.seed = draw.randrange(1000)
        kill_at = ",".join(f"{step}:TERM" for step in steps)
        worlds = ",".join([str(ranks)] * (stops + 1))
        arguments = f"--steps {_STEPS} --seed {self.seed} --kill-at {kill_at} --worlds {worlds}"
        print(f"python -m benchmarks.training.proof {arguments}")  # noqa: T201  pytest shows it when a test fails
        schedule = Schedule.read(steps=_STEPS, kill_at=kill_at, worlds=worlds)
        self._proof = Proof(schedule=schedule, seed=self.seed, checkpoint_every=5)
        self.plain, self.stopped = runs_of(schedule)[:2]
        self.one_stop = replace(schedule, kills=schedule.kills[:1], worlds=schedule.worlds[:2])
        self.root = root
        self.after_first = root / "after-first"
        self.plain_attempts = self._job(self.plain, "plain").attempts(lambda _: None)
        self.attempts = self._job(self.stopped, "stopped").attempts(self._keep_first)

    def _job(self, run: Run, name: str, **changes: Any) -> Job:
        place = self.root / name
        return Job(
            place=place,
            schedule=run.schedule,
            hyperparameters=self._proof.hyperparameters(run),
            **changes,
        )

    def _keep_first(self, _attempt: Attempt) -> None:
        if not self.after_first.exists():
            shutil.copytree(self.root / "stopped/checkpoints", self.after_first)

    def going_on(self, program: str) -> list[Attempt]:
        """The first attempt, and a spoiled one that resumes from where it stopped."""
        run = replace(self.plain, id=program)
        shutil.copytree(self.after_first, self.root / program / "checkpoints")
        job = self._job(run, program, program=_PROGRAMS / f"{program}.py")
        return [self.attempts[0], *job.attempts(lambda _: None)]

    def hashes(self, name: str) -> dict[str, str]:
        return hashes_of(self.root / name / f"checkpoints/step-{_STEPS:08d}")

    def log(self, name: str) -> list[dict[str, object]]:
        """Every metric record without what is timed."""
        files = sorted((self.root / name).glob("metrics-*.jsonl"))
        records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [
            {key: value for key, value in record.items() if key not in _TIMED | {"ckpt_step"}}
            for record in records
        ]

    def failed(self, run: Run, attempts: list[Attempt], name: str) -> set[str]:
        """The checks of this run that fail."""
        runs = [
            facts_of(self.plain, self.plain_attempts, self.hashes("plain")),
            facts_of(run, attempts, self.hashes(name)),
        ]
        facts = {"steps": _STEPS, "checkpoint_every": 5, "tolerance": TOLERANCE, "runs": runs}
        report = Report("training", facts=facts)
        check(report)
        return {one.id for one in report.checks if not one.ok}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("proof"), stops=2, ranks=2)


def test_T04_stopped_at_a_random_step_a_lone_rank_trains_as_the_run_that_nobody_stopped(
    tmp_path: Path,
) -> None:
    _is_as_if_never_stopped(Story(tmp_path, stops=1, ranks=1), exit_codes=[143, 0])


@pytest.mark.thorough
def test_T04_stopped_at_two_random_steps_its_log_is_that_of_the_run_that_nobody_stopped(story: Story) -> None:
    _is_as_if_never_stopped(story, exit_codes=[143, 143, 0])


def _is_as_if_never_stopped(story: Story, *, exit_codes: list[int]) -> None:
    assert [one.exit_code for one in story.attempts] == exit_codes, story.attempts
    assert [len(one.losses) for one in story.plain_attempts] == [_STEPS], story.plain_attempts
    assert story.log("stopped") == story.log("plain")
    assert story.hashes("stopped") == story.hashes("plain")
    assert story.failed(story.stopped, story.attempts, "stopped") == set()


@pytest.mark.thorough
def test_the_proof_finds_out_that_a_resumed_optimizer_has_lost_its_moments(story: Story) -> None:
    attempts = story.going_on("drops_the_optimizer")
    run = replace(story.stopped, id="spoiled", schedule=story.one_stop)
    assert story.failed(run, attempts, "drops_the_optimizer") == {"spoiled-same-bits", "spoiled-final-hashes"}


@pytest.mark.long
def test_the_proof_finds_out_that_a_resumed_rank_reads_other_data(story: Story) -> None:
    attempts = story.going_on("shifts_a_rank")
    run = replace(story.stopped, id="spoiled", schedule=story.one_stop)
    assert story.failed(run, attempts, "shifts_a_rank") == {"spoiled-same-bits", "spoiled-final-hashes"}
