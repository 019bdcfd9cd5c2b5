"""``trainmaster account-check`` before it starts anything: what is missing, and who agreed to the cost."""

from collections.abc import Callable

import pytest
from trainmaster_client.cli import account_report

from tests.integration.client.command import Trainmaster

ROLE = "arn:aws:iam::111122223333:role/training"
LENT = ("--role", ROLE, "--bucket", "training-data")
REAL = "https://api.sagemaker.us-east-1.amazonaws.com"


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """An account behind this endpoint; the check itself starts nothing here."""

    def reach(endpoint: str) -> None:
        caller = {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/ann"}
        monkeypatch.setattr(account_report, "_caller", lambda _: (caller, endpoint))
        monkeypatch.setattr(account_report, "_examine", lambda _: False)

    return reach


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param((), ("--role is missing", "TRAINMASTER_ROLE"), id="nothing is given"),
        pytest.param(
            ("--role", "training"), ("--role training is not the ARN",), id="a role without its ARN"
        ),
        pytest.param(("--role", ROLE), ("--bucket is missing", "TRAINMASTER_BUCKET"), id="no bucket"),
        pytest.param(
            ("--role", ROLE, "--bucket", "s3://training"), ("--bucket s3://training",), id="a URI as bucket"
        ),
        pytest.param((*LENT, "--starve"), ("--starve", "--gpu"), id="nothing to wait for"),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(
    trainmaster: Trainmaster, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ran = trainmaster("account-check", *arguments)
    assert ran.code == 2
    assert [word for word in words if word not in ran.err] == []


def test_without_a_terminal_nobody_agrees_to_the_cost(
    trainmaster: Trainmaster, of: Callable[[str], None]
) -> None:
    of(REAL)
    ran = trainmaster("account-check", *LENT)
    assert ran.code == 2
    assert "at most" in ran.err
    assert "USD" in ran.err
    assert "--yes" in ran.err


def test_who_says_yes_is_told_the_cost_and_not_asked(
    trainmaster: Trainmaster, of: Callable[[str], None], tmp_path
) -> None:
    of(REAL)
    ran = trainmaster("account-check", *LENT, "--yes", "--json", str(tmp_path / "r.json"))
    assert "account 111122223333" in ran.err
    assert "0 ok" in ran.out


def test_the_twin_costs_nothing(trainmaster: Trainmaster, of: Callable[[str], None], tmp_path) -> None:
    of("http://127.0.0.1:4599")
    ran = trainmaster("account-check", *LENT, "--json", str(tmp_path / "r.json"))
    assert "USD" not in ran.err
    assert (tmp_path / "r.json").exists()


def test_a_region_without_a_public_image_asks_for_one(
    trainmaster: Trainmaster, of: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    of(REAL)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-south-2")
    ran = trainmaster("account-check", *LENT, "--yes")
    assert ran.code == 2
    assert "--image" in ran.err
