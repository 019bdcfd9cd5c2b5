"""A sweep in the demo's world: twelve tasks of learning rates and batch sizes, two of which fail."""

from itertools import product

from demos.programs import sweep_task
from demos.stage.evidence import Document
from demos.stage.job_requests import GPU_IMAGE, Job
from demos.stage.two_teams import SMALL, World

NAME = "vit-lr-batch"
RATES, BATCHES = ("1e-4", "3e-4", "1e-3", "3e-3"), ("16", "32", "64")
FAILED = 2
"""Tasks that fail: the largest batch with a learning rate above the best."""
_MINUTES = 4


def body(world: World, name: str = NAME) -> Document:
    """Return the body of ``POST /add-array``."""
    job = Job(
        name=name,
        image=GPU_IMAGE,
        command=["python", sweep_task.__file__],
        instance_type=SMALL,
        hyperparameters={"lr": "1e-4", "batch": "16"},
        tags={"model_name": "vit"},
        priority=5,
    )
    request = job.request(world.twin.ready)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": r"loss=([0-9.]+)"}]
    values = [{"lr": rate, "batch": batch} for rate, batch in product(RATES, BATCHES)]
    return {"request": request, "tasks": f"0-{len(values) - 1}", "values": values}


def play(world: World) -> None:
    """Submit the sweep as team vision, and let all of its tasks end."""
    vision = world.teams["vision"]
    vision.add_array(body(world), key=NAME)
    world.clock(_MINUTES)
    world.wait(f"{NAME} is over", lambda: vision.array(NAME)["state"] in {"completed", "failed"})
