"""SageMaker SDK v2: an estimator as always, with the session of the queue."""

import threading
import time

import boto3
import sagemaker
from sagemaker.pytorch import PyTorch
from sagemaker.session_settings import SessionSettings
from trainmaster_client.session import QueueTrainingJobSession

from demos.programs import training_settings as settings
from demos.programs.sight import Sight

LOOK_SECONDS = 1.0


def main() -> None:
    boto_session = boto3.Session()
    sight = Sight()
    sight.listen(boto_session.events)
    session = QueueTrainingJobSession(
        boto_session, settings=SessionSettings(encrypt_repacked_artifacts=False)
    )
    estimator = PyTorch(
        entry_point="train.py",
        source_dir=settings.SOURCE,
        image_uri=settings.IMAGE,
        role=settings.ROLE,
        instance_type=settings.INSTANCE_TYPE,
        instance_count=1,
        hyperparameters=settings.HYPERPARAMETERS,
        checkpoint_s3_uri=settings.CHECKPOINTS,
        output_path=settings.OUTPUT,
        base_job_name=settings.LABEL,
        max_run=3600,
        disable_profiler=True,
        debugger_hook_config=False,
        sagemaker_session=session,
    )
    threading.Thread(target=look, args=(estimator,), daemon=True).start()
    estimator.fit(wait=True)
    estimator.latest_training_job.describe()
    name = estimator.latest_training_job.name
    sight.write(f"sagemaker {sagemaker.__version__}", job=name, model_artifacts=estimator.model_data)


def look(estimator: PyTorch) -> None:
    """Look at the job from time to time while ``fit`` waits, as another cell of a notebook would."""
    while True:
        time.sleep(LOOK_SECONDS)
        if estimator.latest_training_job is not None:
            estimator.latest_training_job.describe()


if __name__ == "__main__":
    main()
