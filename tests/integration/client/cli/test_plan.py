"""``trainmaster plan``: no API is asked."""

import json

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi
from tools.training import plan

LINE = (
    "--preset llama2-13b --instances ml.p5.48xlarge=2 --batch-size 64 --gradient-accumulation-steps 2"
    " --precision bf16_pure --reduce-dtype bf16 --strategy hybrid_shard --shard-group-size 4"
    " --activation-checkpointing selective --prefetch-blocks 2 --cpu-offload true --sequence-length 2048"
)
OPTIONS = LINE.split()


def test_it_says_what_the_training_program_says(trainmaster: Trainmaster, api: FakeApi) -> None:
    ran = trainmaster("plan", *OPTIONS)
    assert "bf16_pure, hybrid_shard over 4 of 16 ranks" in ran.out
    assert "\n\non each GPU" in ran.out
    found = json.loads(trainmaster("plan", *OPTIONS, "--json").out)
    assert found["host_bytes_per_rank"] == 10 * 3_253_966_080
    assert api.received == []
    assert plan.main([*OPTIONS, "--json"]) == ran.code


def test_what_does_not_fit_is_exit_code_1(trainmaster: Trainmaster) -> None:
    ran = trainmaster("plan", "--preset", "llama2-70b", "--instances", "ml.g5.xlarge=1")
    assert ran.code == 1
    assert "Does not fit" in ran.out


def test_wrong_usage_is_exit_code_2(trainmaster: Trainmaster) -> None:
    unknown = trainmaster("plan", "--preset", "llama9", "--instances", "ml.g5.xlarge=1")
    assert (unknown.code, unknown.out) == (2, "")
    assert "There is no preset 'llama9'." in unknown.err
    assert trainmaster("plan", "--preset", "tiny", "--instances", "3").code == 2
    assert (
        trainmaster("plan", "--preset", "tiny", "--instances", "ml.g5.xlarge=1", "--batch-size", "0").code
        == 2
    )


def test_images_are_planned_and_options_of_texts_are_refused_for_them(trainmaster: Trainmaster) -> None:
    where = ("--instances", "ml.p5.48xlarge=1", "--preset")
    ran = trainmaster(
        "plan", *where, "vit-base", "--image-size", "384", "--classes", "37", "--batch-size", "64"
    )
    assert ran.code == 0
    assert "64 images of 577 tokens a step" in ran.out
    masked = trainmaster("plan", *where, "vit-large", "--objective", "masked", "--batch-size", "8", "--json")
    assert json.loads(masked.out)["params"] == 304_089_856
    refused = trainmaster("plan", *where, "vit-base", "--sequence-length", "128")
    assert (refused.code, refused.out) == (2, "")
    assert "sequence_length is for presets of texts." in refused.err
    uneven = trainmaster("plan", *where, "vit-base", "--image-size", "100")
    assert "image_size 100 does not divide by the model's patch of 16." in uneven.err
    assert "are for presets of images." in trainmaster("plan", *where, "tiny", "--classes", "10").err
