"""Checks the options of ``trainmaster simulate``, and reads its policies and history."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy import Policy, parse_policy

from trainmaster_client.cli.connection import CommandApi, aws_session
from trainmaster_client.cli.screen import say
from trainmaster_client.cli.simulation_options import SourceOptions
from trainmaster_client.errors import CredentialsError, InvalidArgumentError, UnexpectedAnswerError
from trainmaster_client.jobs.instants import instant
from trainmaster_client.policies import policy_document
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replayed_plans import with_known_plans
from trainmaster_client.simulate.io.known_plans import known_plans
from trainmaster_client.simulate.sources import (
    Period,
    SageMakerReading,
    history_from_account,
    history_from_file,
    history_from_sagemaker,
    history_from_trace,
    usual_cache,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    teams: tuple[str, ...]
    rules: tuple[str, ...]


def check_source(options: SourceOptions) -> None:
    """Raises InvalidArgumentError unless there is exactly one."""
    flags = {
        "--from-account": options.from_account,
        "--history": options.history,
        "--trace": options.trace,
        "--from-sagemaker": options.from_sagemaker,
    }
    given = [flag for flag, value in flags.items() if value is not None]
    if len(given) == 1:
        return
    what = f"{' and '.join(given)} exclude each other." if given else "No history is given."
    raise InvalidArgumentError(what, hint=f"Give one of {', '.join(flags)}, e.g. --from-account 30d.")


def read_seeds(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise InvalidArgumentError(
            f"--seeds: {text!r} is not a list of different numbers;", hint="use e.g. 1,2,3."
        )
    return tuple(int(part) for part in parts)


def read_capacity(options: Sequence[str] | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in options or ():
        name, _, count = text.rpartition("=")
        if not name or not (count.isascii() and count.isdecimal()):
            raise InvalidArgumentError(
                f"--capacity: {text!r} is not a type with a number;", hint="use e.g. ml.p5.48xlarge=6."
            )
        counts[str(Capacity.parse(name))] = int(count)
    return counts


def read_without(options: Sequence[str] | None) -> Without | None:
    kinds: dict[str, list[str]] = {"team": [], "rule": []}
    for text in options or ():
        kind, _, name = text.partition(":")
        if kind not in kinds or not name:
            raise InvalidArgumentError(
                f"--without: {text!r} is not a team or a rule;",
                hint="use e.g. team:vision or rule:max_runtime.",
            )
        kinds[kind].append(name)
    if not options:
        return None
    return Without(teams=tuple(kinds["team"]), rules=tuple(kinds["rule"]))


def read_team_map(options: Sequence[str] | None) -> dict[str, str]:
    teams: dict[str, str] = {}
    for text in options or ():
        name, _, team = text.rpartition("=")
        if not name or not team:
            raise InvalidArgumentError(
                f"--team-map: {text!r} is not a pair of names;", hint="use e.g. 6214e9=vision."
            )
        teams[name] = team
    return teams


def policies_of(files: Sequence[Path] | None) -> list[tuple[str, Policy]]:
    """Read the policies, each labelled with its file's name or as much of its path as tells it apart."""
    paths = list(files or ())
    names = [file.name for file in paths]
    labels = [file.name if names.count(file.name) == 1 else str(file) for file in paths]
    if len(set(labels)) < len(labels):
        raise InvalidArgumentError("--policy: a file is given twice.", hint="Give each policy once.")
    return [
        (label, policy_of(file.read_bytes(), source=str(file)))
        for label, file in zip(labels, paths, strict=True)
    ]


def policy_of(text: bytes, *, source: str) -> Policy:
    """Raises InvalidArgumentError with everything that is wrong."""
    return parsed(policy_document.parse_policy(text, source=source), source=source)


def parsed(document: Mapping[str, object], *, source: str) -> Policy:
    try:
        return parse_policy(document)
    except PolicyViolationError as error:
        mistakes = [f"{error.field}: {error.message}; {error.hint}" for error in error.errors] or [str(error)]
        raise InvalidArgumentError(
            "\n".join([f"{source} is not a valid policy:", *(f"  {line}" for line in mistakes)]),
            hint="\ndocs/policy.md has every key.",
        ) from error


def with_stack(api: CommandApi, files: Sequence[tuple[str, Policy]]) -> list[tuple[str, Policy]]:
    """Return the stack's policy before those of files, all with what the stack knows of training plans."""
    policies = [policy_in_force(api), *files]
    if not any(pool.plans for _, policy in policies for pool in policy.pools):
        return policies
    known = known_plans(api.pools().get("pools") or (), where=api.api_url)
    return [(label, with_known_plans(policy, known)) for label, policy in policies]


def policy_in_force(api: CommandApi) -> tuple[str, Policy]:
    """Return the stack's policy, labelled with its revision."""
    answer = api.policy()
    document = answer.get("policy")
    if not isinstance(document, dict):
        raise UnexpectedAnswerError(api.api_url, what="no document in the policy in force")
    return f"revision {answer.get('revision')}", parse_policy(document, is_stored=True)


def period_since(text: str, *, option: str, now: datetime | None = None) -> Period:
    at = now or datetime.now(UTC)
    return Period(since=instant(text, now=at, option=option), until=at)


def histories(
    options: SourceOptions, policy: Policy | None, api: CommandApi | None, seeds: Sequence[int]
) -> Iterator[History]:
    """Yield a history for each seed, or a single one: what is recorded is not drawn."""
    if options.trace is not None:
        if policy is None:
            raise InvalidArgumentError(
                "--policy is missing.", hint="A trace is replayed in the pools of a policy: --policy FILE."
            )
        for seed in seeds:
            yield history_from_trace(options.trace, policy, seed=seed)
    elif options.history is not None:
        yield history_from_file(options.history)
    elif options.from_account is not None and api is not None:
        yield history_from_account(api, period_since(options.from_account, option="--from-account"))
    elif options.from_sagemaker is not None:
        yield _from_sagemaker(options.from_sagemaker, options.team_tag)


def _from_sagemaker(text: str, team_tag: str | None) -> History:
    period = period_since(text, option="--from-sagemaker")
    session = aws_session()
    try:
        client: Any = session.client("sagemaker")
    except BotoCoreError as error:
        raise CredentialsError(f"{error}.") from error
    cache = usual_cache(client.meta.region_name)
    return history_from_sagemaker(
        client, period, SageMakerReading(team_tag=team_tag, cache=cache, announce=say)
    )
