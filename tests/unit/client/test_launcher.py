"""The launcher's line in a request: within SageMaker's limits, and put there for both SDKs."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from trainmaster.core.request.validation import check_request
from trainmaster_client.errors import UnsupportedTrainerError
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.trainer import use_launcher

from tests.bodies import body

ALGORITHM = {"TrainingImage": "registry.example/pytorch:2.8", "TrainingInputMode": "File"}


def test_the_line_is_within_sagemakers_limits_and_the_queue_takes_it() -> None:
    assert len(LAUNCHER) <= 100
    assert max(len(one) for one in LAUNCHER) <= 256
    assert not any("\n" in one for one in LAUNCHER)
    assert check_request(body(AlgorithmSpecification={**ALGORITHM, "ContainerEntrypoint": LAUNCHER})) == []


class Specification(BaseModel):
    container_entrypoint: list[str] | None = ["/bin/bash"]
    container_arguments: list[str] | None = ["-c", "sm_train.sh"]


class Trainer(BaseModel):
    """Of the shape of ModelTrainer in sagemaker-train 1.27, a pydantic model that makes its own request."""

    model_config = ConfigDict(extra="forbid")

    source_code: Any = SimpleNamespace(entry_script="train.py", command=None)
    distributed: Any = None
    sent: list[dict[str, Any]] = []

    def train(self) -> None:
        self.sent.append(self._create_training_job_args(input_data_config=["data"]))

    def _create_training_job_args(self, input_data_config: Any = None, boto3: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  the SDK's
        if boto3:
            words = {"ContainerEntrypoint": ["/bin/bash"], "ContainerArguments": ["-c", "x"], **ALGORITHM}
            return {"AlgorithmSpecification": words}
        return {"algorithm_specification": Specification(), "input_data_config": input_data_config}


def test_the_request_of_a_model_trainer_gets_the_line_and_stays_as_it_is_otherwise() -> None:
    trainer, other = Trainer(), Trainer()
    use_launcher(trainer)
    trainer.train()
    (sent,) = trainer.sent
    assert sent["algorithm_specification"].container_entrypoint == LAUNCHER
    assert sent["algorithm_specification"].container_arguments is None
    assert sent["input_data_config"] == ["data"]
    other.train()
    assert other.sent[0]["algorithm_specification"].container_entrypoint == ["/bin/bash"]


def test_the_request_in_boto3s_form_gets_it_too() -> None:
    trainer = Trainer()
    use_launcher(trainer)
    request = trainer._create_training_job_args(boto3=True)
    assert request == {"AlgorithmSpecification": {"ContainerEntrypoint": LAUNCHER, **ALGORITHM}}


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        pytest.param(
            Trainer(source_code=None), "needs source_code with an entry_script", id="no source code"
        ),
        pytest.param(
            Trainer(source_code=SimpleNamespace(entry_script="train.py", command="python train.py")),
            "without a command",
            id="a command",
        ),
        pytest.param(Trainer(distributed=object()), "leave distributed out", id="a launcher of the SDK's"),
        pytest.param(
            SimpleNamespace(source_code=Trainer().source_code, distributed=None),
            "it has no _create_training_job_args",
            id="another SDK",
        ),
    ],
)
def test_a_trainer_that_cannot_use_it_is_refused(trainer: Any, message: str) -> None:
    with pytest.raises(UnsupportedTrainerError, match=message):
        use_launcher(trainer)
