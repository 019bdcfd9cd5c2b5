"""SageMaker SDK v3: a ModelTrainer as always, after one line that puts its boto3 session behind the queue."""

import logging
from importlib.metadata import version

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import CheckpointConfig, Compute, OutputDataConfig, SourceCode, StoppingCondition
from trainmaster_client.hook import install

from demos.programs import training_settings as settings
from demos.programs.sight import Sight


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # the SDK shows log lines as its own
    boto_session = boto3.Session()
    sight = Sight()
    sight.listen(boto_session.events)
    install(boto_session)
    trainer = ModelTrainer(
        sagemaker_session=Session(boto_session=boto_session),
        role=settings.ROLE,
        training_image=settings.IMAGE,
        source_code=SourceCode(source_dir=settings.SOURCE, entry_script="train.py"),
        compute=Compute(instance_type=settings.INSTANCE_TYPE, instance_count=1, volume_size_in_gb=30),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=3600),
        output_data_config=OutputDataConfig(s3_output_path=settings.OUTPUT),
        checkpoint_config=CheckpointConfig(s3_uri=settings.CHECKPOINTS),
        hyperparameters=settings.HYPERPARAMETERS,
        base_job_name=settings.LABEL,
    )
    trainer.train(wait=True, logs=True)
    job = trainer._latest_training_job  # noqa: SLF001  the SDK has no public name for it
    sight.write(
        f"sagemaker-train {version('sagemaker-train')}",
        job=job.training_job_name,
        model_artifacts=job.model_artifacts.s3_model_artifacts,
    )


if __name__ == "__main__":
    main()
