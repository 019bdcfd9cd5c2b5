"""The walk-throughs of the training program: their code makes valid jobs, their figures are the plane's."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.jobs.model import JobState
from trainmaster.core.memory import memory_plan
from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.training_runs import run_of
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.governance import Recovery
from trainmaster.core.request.validation import check_request
from trainmaster.core.rules.check import check
from trainmaster_client.launcher import LAUNCHER

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, view
from tests.markdown import ROOT, blocks, codes, table, text_of
from training import launch
from training.config import TrainConfig, read_config
from training.errors import LostRanksError, MissingRanksError

pytestmark = pytest.mark.thorough

GUIDES = ("docs/training/finetune.md", "docs/training/pretrain.md")
INTERRUPTIONS = text_of("docs/training/interruptions.md")
SIZES = ("model", "instances", "hyperparameters", "GiB on each GPU", "usable", "USD an hour")
SPEEDS = ("model", "instances", "tokens/s a GPU", "steps", "tokens a step", "hours", "USD")


@pytest.fixture
def aws(
    aws_environment: None, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[FakeApi]:
    """S3 in this process for the source code, the fake API for the job; nothing leaves this machine."""
    quiet = tmp_path / "sagemaker.yaml"
    quiet.write_text("SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n")
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(quiet))
    monkeypatch.setenv("TRAINMASTER_API_URL", api.url)
    monkeypatch.chdir(ROOT)
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    with mock_aws(config={"core": {"mock_credentials": False}}):
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="my-bucket")
        yield api


@dataclass(frozen=True, slots=True)
class Example:
    guide: str
    code: str


EXAMPLES = [
    pytest.param(Example(guide, block.text), id=f"{Path(guide).stem} {number}")
    for guide in GUIDES
    for number, block in enumerate(blocks(text_of(guide), "python"))
]


def submitted(api: FakeApi, example: Example) -> dict[str, Any]:
    """The CreateTrainingJob request that an example sends to the queue."""
    exec(compile(example.code, example.guide, "exec"), {})
    (received,) = api.received
    return dict(json.loads(received.body))


def options(request: dict[str, Any], place: Path) -> TrainConfig:
    """As the job's launcher hands them to the program."""
    (place / "hyperparameters.json").write_text(json.dumps(request["HyperParameters"]))
    given = launch.hyperparameters({"SM_INPUT_CONFIG_DIR": str(place)})
    own = [f"--{key}={text}" for key, text in given.items() if not key.startswith("sagemaker_")]
    return read_config(own, {})


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_valid_job_that_fits_and_keeps_its_work(
    aws: FakeApi, example: Example, tmp_path: Path
) -> None:
    request = submitted(aws, example)
    assert check_request(request) == []
    policy = parse_policy({"rules": {"must_fit": True, "single_az_when_distributed": True}})
    assert list(check(request, team="a", policy=policy)) == []
    assert run_of(request["HyperParameters"]) is not None  # or must_fit would have had nothing to say
    config = options(request, tmp_path)
    hosts = request["ResourceConfig"]["InstanceCount"]
    assert config.batch_size % (8 * hosts * config.gradient_accumulation_steps) == 0
    assert request["AlgorithmSpecification"]["ContainerEntrypoint"] == LAUNCHER
    # Several hosts write to S3 themselves; then the mirrored place is for the status alone.
    assert ("/status/" in request["CheckpointConfig"]["S3Uri"]) is (hosts > 1)
    assert config.checkpoint_dir.startswith("s3://") is (hosts > 1)
    channels = {one["ChannelName"] for one in request.get("InputDataConfig", ())}
    places = (config.init_from, config.data, config.eval_data)
    assert {one.removeprefix("channel:") for one in places if one.startswith("channel:")} == channels


def plans_in(text: str) -> list[tuple[str, str]]:
    """Commands `trainmaster plan`, each with the block that follows."""
    found = re.findall(r"```bash\n(trainmaster plan [^`]*)```\n+```\n([^`]*)```", text)
    return [(command.strip(), shown) for command, shown in found]


@pytest.mark.parametrize("guide", [*GUIDES, "docs/cli.md"])
def test_the_plans_are_what_the_command_prints(trainmaster: Trainmaster, guide: str) -> None:
    plans = plans_in(text_of(guide))
    assert plans
    for command, shown in plans:
        ran = trainmaster(*command.split()[1:])
        assert (ran.code, ran.out) == (0, shown)


@pytest.mark.parametrize("guide", GUIDES)
def test_the_sizes_are_the_planes(guide: str) -> None:
    for model, instances, chosen, each, usable, price in table(text_of(guide), *SIZES):
        preset, asked = codes(model)[0], memory_plan.read_instances(codes(instances)[0])
        run = run_of({"preset": preset, **dict(one.split("=") for one in codes(chosen)[0].split())})
        assert run is not None, chosen
        found = memory_plan.plan(preset, run, asked)
        shown = "\n".join(memory_plan.as_lines(found))
        assert found.estimate.fits
        assert "refuses" not in shown
        assert f"together        {each:>8}\n" in shown, (model, instances, shown)
        assert f"usable          {usable:>8} " in shown
        assert f" {price} USD an hour" in shown


@pytest.mark.parametrize("guide", GUIDES)
def test_times_and_costs_follow_from_speeds(guide: str) -> None:
    for model, instances, speed, steps, tokens, hours, cost in table(text_of(guide), *SPEEDS):
        asked = memory_plan.read_instances(codes(instances)[0])
        found = memory_plan.plan(codes(model)[0], run_of_tiny(), asked)
        ranks, price = found.cluster.world_size, memory_plan.usd_per_hour(asked)
        assert price is not None
        took = timedelta(seconds=int(steps) * int(tokens) / (ranks * int(speed))) / timedelta(hours=1)
        assert f"{took:.1f}" == hours, model
        assert f"{price * Decimal(hours):.0f}" == cost, model


def run_of_tiny() -> Any:
    return run_of({"preset": "tiny"})


def test_every_model_of_llama_2_has_its_walk_through() -> None:
    for guide in GUIDES:
        assert {codes(row[0])[0] for row in table(text_of(guide), *SIZES)} >= {
            name for name in PRESETS if name.startswith("llama2")
        }


FAILURES = ("what", "example of the failure file", "class", "retried")


def test_failures_have_the_class_and_the_fate_that_the_plane_gives_them() -> None:
    for _, message, name, again in table(INTERRUPTIONS, *FAILURES):
        reason = codes(message)[0]
        wrapped = reason if reason.startswith("Internal") else f"AlgorithmError: {reason}, exit code: 1"
        found = diagnose(FailureEvidence(failure_reason=wrapped)).failure_class
        assert found == codes(name)[0], message
        assert (found in Recovery().retry_classes) is (again == "yes"), message


@pytest.mark.parametrize(
    "error",
    [
        MissingRanksError(who="host algo-2 (ranks 8-15)", seconds=600),
        MissingRanksError(who="rank 0, to be met at algo-1:7777,", seconds=0.5),
        LostRanksError(who="host algo-2 (ranks 8-15)", reason="Connection closed"),
        LostRanksError(who="", reason="timed out"),
    ],
)
def test_hosts_that_do_not_meet_are_worth_another_try(error: Exception) -> None:
    wrapped = f"AlgorithmError: {error}, exit code: 1"
    assert diagnose(FailureEvidence(failure_reason=wrapped)).failure_class is FailureClass.NETWORK


def test_stops_name_states_and_exit_codes_that_there_are() -> None:
    stops = table(INTERRUPTIONS, "what", "the job", "what trainmaster does next")
    named = {code for row in stops for code in codes(row[1])}
    assert named - {str(state) for state in JobState} == {"max-runtime", "idle", "stopped-outside"}
    rows = table(INTERRUPTIONS, "started with", "steps lost", "exit code", "`status.json`")
    exits = {row[0]: int(row[2]) for row in rows}
    assert exits == {"launcher": launch.End.PREEMPTED, "script mode": 128 + 9, "torchrun": 1}
