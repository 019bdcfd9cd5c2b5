"""Check the rule about secrets: fields are named, but their values are never repeated."""

from collections.abc import Iterator
from itertools import pairwise

from trainmaster.core.field_paths import Path, path_text
from trainmaster.core.policy.job_rules import Rules
from trainmaster.core.request.secret_detectors import option_named, secret_in, secret_in_text
from trainmaster.core.request.strict_json import JsonValue
from trainmaster.core.request.validation.sections import Section, elements, section
from trainmaster.core.rules.violation import Violation

RULE = "secrets"
_HINT = "keep secrets in AWS Secrets Manager and read them in the training code; pass the secret's name"
_NAMED = ("HyperParameters", "Environment")
_RULE_LISTS = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
_PARAMETERS = (("DebugHookConfig", "HookParameters"), ("ProfilerConfig", "ProfilingParameters"))
_COMMANDS = ("ContainerEntrypoint", "ContainerArguments")


def check_secrets(body: Section, rules: Rules) -> Iterator[Violation]:
    mode = rules.secrets.judges if rules.secrets else None
    if mode is None:
        return
    free = tuple(_free_texts(body))
    kinds = {path: secret_in(value, name=name) for path, name, value in free}
    for path, value in _texts(dict(body), ()):
        if path not in kinds:
            kinds[path] = secret_in_text(value)
    for path, kind in kinds.items():
        if kind is not None:
            yield Violation(
                rule=RULE, field=path_text(path), message=f"looks like {kind}", hint=_HINT, mode=mode
            )


def _free_texts(body: Section) -> Iterator[tuple[Path, str, str]]:
    """Yield path, name and value of each field with free text."""
    for name in _NAMED:
        yield from _entries(body, name, ())
    for index, tag in elements(body, "Tags"):
        key, value = tag.get("Key"), tag.get("Value")
        if isinstance(value, str):
            yield ("Tags", index, "Value"), key if isinstance(key, str) else "", value
    for name in _RULE_LISTS:
        for index, rule in elements(body, name):
            yield from _entries(rule, "RuleParameters", (name, index))
    for parent, name in _PARAMETERS:
        yield from _entries(section(body, parent) or {}, name, (parent,))
    algorithm = section(body, "AlgorithmSpecification") or {}
    for name in _COMMANDS:
        yield from _words(algorithm.get(name), ("AlgorithmSpecification", name))


def _entries(parent: Section, name: str, path: Path) -> Iterator[tuple[Path, str, str]]:
    for key, value in (section(parent, name) or {}).items():
        if isinstance(value, str):
            yield (*path, name, key), key, value


def _words(value: JsonValue, path: Path) -> Iterator[tuple[Path, str, str]]:
    words = [word if isinstance(word, str) else "" for word in value] if isinstance(value, list) else []
    for index, (before, word) in enumerate(pairwise(["", *words])):
        name = "" if word.startswith("-") else option_named(before)
        yield (*path, index), name, word


def _texts(value: JsonValue, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
