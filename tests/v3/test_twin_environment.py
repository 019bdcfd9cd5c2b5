"""L14: a program of the SageMaker SDK v3 in the environment that the twin prints, and nothing else."""

import sys
from pathlib import Path

from local.twin_process import TwinProcess
from tests.loopback import ran_alone

PROGRAM = """
from trainmaster_client.hook import install
from sagemaker.core.helper.session_helper import get_execution_role
from sagemaker.core.training.configs import Compute, SourceCode
from sagemaker.train import ModelTrainer

install()
roles = {"given": "trainmaster-local-training", "found": get_execution_role(), "default": None}
for name, role in roles.items():
    ModelTrainer(
        training_image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
        source_code=SourceCode(source_dir="source", entry_script="train.py"),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
        role=role,
        base_job_name=name,
    ).train(wait=False)
"""


def test_a_trainer_of_sdk_v3_queues_under_any_role_and_asks_nobody_but_the_twin(
    twin: TwinProcess, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/train.py").write_text("print('trained')\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    _, strangers = ran_alone(twin, tmp_path, (sys.executable, str(tmp_path / "program.py")))
    added = [one["params"]["body"] for one in twin.records() if one.get("operation") == "POST /add-job"]
    account = twin.ready["account_id"]
    roles = {one["TrainingJobName"].split("-")[0]: one["RoleArn"].rpartition("role/")[2] for one in added}
    assert strangers == []
    assert account in added[-1]["RoleArn"]
    assert {name: roles.get(name) for name in ("given", "found", "default")} == {
        "given": "trainmaster-local-training",
        "found": "local-admin",
        "default": "trainmaster-local-training",
    }
