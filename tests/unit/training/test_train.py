import os
from typing import Any

import pytest

from training import job
from training.train import main


@pytest.mark.parametrize(
    ("before", "options", "found"),
    [
        pytest.param({}, ["--cache_dir", "/cache"], "/cache/torchinductor", id="an option"),
        pytest.param(
            {"SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY": "/pool"},
            [],
            "/pool/torchinductor",
            id="a warm pool",
        ),
        pytest.param(
            {"TORCHINDUCTOR_CACHE_DIR": "/mine"}, ["--cache_dir", "/cache"], "/mine", id="the user's own"
        ),
        pytest.param({}, [], None, id="no cache"),
    ],
)
def test_compiled_code_is_kept_in_the_cache(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, str], options: list[str], found: str | None
) -> None:
    seen: list[Any] = []

    def run(*_: object) -> int:
        seen.append(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))
        return 0

    monkeypatch.setattr(job, "run", run)
    # Once a process has compiled anything, torch itself has set the variable.
    given = {name: text for name, text in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    monkeypatch.setattr(os, "environ", given | before)
    assert main(options) == 0
    assert seen == [found]
