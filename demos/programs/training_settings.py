"""The one training of all doors, as their programs get it."""

import os

LABEL = os.environ.get("DEMO_LABEL", "door")
BUCKET = os.environ.get("DEMO_BUCKET", "")
ROLE = os.environ.get("DEMO_ROLE", "")

IMAGE = os.environ.get("DEMO_IMAGE", "")
INSTANCE_TYPE = os.environ.get("DEMO_INSTANCE_TYPE", "")
SOURCE = "training"
"""Folder of the checkout that the programs run in."""

STEPS = 60
CHECKPOINT_EVERY = 10

HYPERPARAMETERS: dict[str, str | int | float] = {
    "preset": "tiny",
    "steps": STEPS,
    "seed": 7,
    "batch_size": 4,
    "checkpoint_every": CHECKPOINT_EVERY,
    "hold_file": os.environ.get("DEMO_HOLD", ""),
}
CHECKPOINTS = f"s3://{BUCKET}/checkpoints/{LABEL}"
OUTPUT = f"s3://{BUCKET}/output"
