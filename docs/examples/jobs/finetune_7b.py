from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.session import QueueTrainingJobSession
from training.metrics import METRIC_DEFINITIONS

estimator = PyTorch(
    base_job_name="tickets-7b",
    source_dir="training",
    entry_point="train.py",
    container_entry_point=LAUNCHER,
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13-cu133-amzn2023-sagemaker",
    role="arn:aws:iam::111122223333:role/training",
    instance_type="ml.p4d.24xlarge",
    instance_count=1,
    volume_size=500,
    max_run=24 * 3600,
    checkpoint_s3_uri="s3://my-bucket/checkpoints/tickets-7b",
    output_path="s3://my-bucket/models",
    hyperparameters={
        "preset": "llama2-7b",
        "init_from": "channel:weights",
        "data": "channel:corpus",
        "document_mask": True,
        "eval_data": "channel:validation",
        "eval_every": 200,
        "batch_size": 32,
        "gradient_accumulation_steps": 4,
        "activation_checkpointing": "selective",
        "compile": "inductor",
        "steps": 2000,
        "lr": 2e-5,
        "warmup_steps": 100,
        "seed": 1,
    },
    metric_definitions=METRIC_DEFINITIONS,
    tags=[{"Key": "priority", "Value": "5"}],
    sagemaker_session=QueueTrainingJobSession(),
)
estimator.fit(
    {
        "weights": TrainingInput("s3://my-bucket/weights/llama-2-7b/", input_mode="FastFile"),
        "corpus": TrainingInput("s3://my-bucket/corpora/support-tickets/train/", input_mode="FastFile"),
        "validation": TrainingInput(
            "s3://my-bucket/corpora/support-tickets/validation/", input_mode="FastFile"
        ),
    },
    wait=False,
)
