"""A job whose model cannot be trained: refused at its start, as the launcher and the control plane see it."""

import json
import os
from pathlib import Path

from trainmaster.core.diagnosis.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.governance import Recovery

from tests.integration.training.launches import Host

_MIXTRAL = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": "32",
    "num_local_experts": 8,
    "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]},
    "vocab_size": 32000,
}


def test_M9_every_mistake_is_one_refusal_before_weights_are_fetched_and_nobody_tries_again(
    tmp_path: Path,
) -> None:
    host = Host.with_program(tmp_path / "host", NPROC_PER_NODE="2", LAUNCH_STOP_SECONDS="60")
    channel = host.base / "input/data/weights"
    channel.mkdir(parents=True)
    (channel / "config.json").write_text(json.dumps(_MIXTRAL))
    os.mkfifo(channel / "model.safetensors")  # who reads it waits for ever
    host.tell("inputdataconfig", {"weights": {}})
    host.tell(
        "hyperparameters",
        {"model_config": "channel:weights", "init_from": "channel:weights", "steps": "two"},
    )
    refused = host.run()
    assert refused.code == 1, refused.errors
    assert len(host.failure) <= 1024
    for mistake in (
        "steps must be a whole number, not 'two'",
        "model_type 'mixtral' is not trained here; one of llama, mistral, qwen2, qwen3, vit is",
        "num_hidden_layers must be a whole number from 1 to 10000, not '32'",
        "rope_scaling.rope_type 'longrope' is not trained here; one of default, linear, ",
        "num_experts_per_tok 2, num_local_experts 8",
    ):
        assert mistake in host.failure
    found = diagnose(FailureEvidence(failure_reason=f"AlgorithmError: {host.failure}, exit code: 1"))
    assert found.failure_class is FailureClass.USER_CODE
    assert found.failure_class not in Recovery().retry_classes
