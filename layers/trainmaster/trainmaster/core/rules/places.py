"""Check the rule about places: where a job may read code and data, and write."""

from collections.abc import Iterator

from trainmaster.core.field_paths import path_text
from trainmaster.core.policy.job_rules import Allowed, Rules
from trainmaster.core.request.s3_uri import S3Location, parse_s3
from trainmaster.core.request.validation.fields import Found, values_of
from trainmaster.core.request.validation.sections import Section, elements, section, text
from trainmaster.core.rules.violation import Violation, listed

_BY_PREFIX = "S3Prefix"
"""S3DataType of an input that reads every key that begins like its URI. Source: SageMaker API reference."""
_MANIFESTS = frozenset({"ManifestFile", "AugmentedManifestFile"})
CODE = "sagemaker_submit_directory"
"""Hyperparameter, and in capitals a variable, that names the code in script mode. Source:
sagemaker-training-toolkit."""


def check_places(body: Section, rules: Rules) -> Iterator[Violation]:
    """Check every S3 URI that the service model has a field for, the code's, and places outside S3."""
    rule = rules.s3_prefixes
    if rule is None:
        return
    for field, message, hint in _problems(body, rule):
        yield Violation(rule="s3_prefixes", field=field, message=message, hint=hint, mode=rule.mode)


def _problems(body: Section, rule: Allowed[S3Location]) -> Iterator[tuple[str, str, str]]:
    for uri in values_of("S3Uri", dict(body)):
        problem = _of_uri(uri, rule)
        if problem is not None:
            yield uri.field, *problem
    yield from _of_code(body, rule)
    yield from _of_file_systems(body)
    yield from _of_tracking(body)


def _of_uri(uri: Found, rule: Allowed[S3Location]) -> tuple[str, str] | None:
    place = parse_s3(uri.value)
    if place is None:
        return "is not a place in S3", "write it as s3://bucket/prefix"
    holders = [allowed for allowed in rule.allow if allowed.holds(place)]
    if not holders:
        return "is outside what is allowed", f"use a place in {listed(rule.allow)}"
    data_type = uri.beside.get("S3DataType")
    if data_type in _MANIFESTS:
        return "is a manifest: where the objects that it names are stored is unknown", f"use {_BY_PREFIX}"
    reads_beyond = data_type == _BY_PREFIX and place.is_open
    if reads_beyond and all(len(allowed.parts) == len(place.parts) for allowed in holders):
        return "reads every key that begins with it, including those of others", "end it with a slash"
    return None


def _of_code(body: Section, rule: Allowed[S3Location]) -> Iterator[tuple[str, str, str]]:
    """Yield a problem with the place of the code.

    A path of the container, ``/opt/ml/...``, is in the image.
    """
    for parent, name in (("HyperParameters", CODE), ("Environment", CODE.upper())):
        written = (text(section(body, parent) or {}, name) or "").strip('"')
        if not written or written.startswith("/"):
            continue
        place = parse_s3(written)
        if place is None or not any(allowed.holds(place) for allowed in rule.allow):
            hint = f"use a place in {listed(rule.allow)}"
            yield path_text((parent, name)), "is outside what is allowed", hint


def _of_file_systems(body: Section) -> Iterator[tuple[str, str, str]]:
    for index, channel in elements(body, "InputDataConfig"):
        if "FileSystemDataSource" in (section(channel, "DataSource") or {}):
            field = path_text(("InputDataConfig", index, "DataSource", "FileSystemDataSource"))
            yield (
                field,
                "is a file system, which a list of S3 places cannot cover",
                "copy the data to a place that is allowed",
            )


_ACCOUNT = 4


def _of_tracking(body: Section) -> Iterator[tuple[str, str, str]]:
    """Yield a problem with a tracking server of another account, as the job's logs would leave this one."""
    server = text(section(body, "MlflowConfig") or {}, "MlflowResourceArn")
    if server is not None and _account(server) != _account(text(body, "RoleArn") or ""):
        message = "belongs to another account than the job's role"
        yield "MlflowConfig.MlflowResourceArn", message, "use a tracking server of this account"


def _account(arn: str) -> str:
    parts = arn.split(":")
    return parts[_ACCOUNT] if len(parts) > _ACCOUNT else ""
