"""The one training of all doors, as their programs get it."""

import os

from demos import requests

LABEL = os.environ.get("DEMO_LABEL", "door")
BUCKET = os.environ.get("DEMO_BUCKET", "")
ROLE = os.environ.get("DEMO_ROLE", "")

INSTANCE_TYPE, IMAGE = requests.INSTANCE_TYPE, requests.IMAGE
SOURCE = "training"
"""Folder of the checkout that the programs run in."""

STEPS = 60
CHECKPOINT_EVERY = 10
PACE_SECONDS = 0.2
"""Shortest step: long enough for somebody more urgent to come in between."""

HYPERPARAMETERS: dict[str, str | int | float] = {
    "preset": "tiny",
    "steps": STEPS,
    "seed": 7,
    "batch_size": 4,
    "checkpoint_every": CHECKPOINT_EVERY,
    "min_step_seconds": PACE_SECONDS,
}
CHECKPOINTS = f"s3://{BUCKET}/checkpoints/{LABEL}"
OUTPUT = f"s3://{BUCKET}/output"
