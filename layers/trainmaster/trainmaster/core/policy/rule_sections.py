"""Reading ``rules`` of the policy, and the lists of a team that are rules too."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from trainmaster.core.policy.governing import Mode
from trainmaster.core.policy.images import Image, parse_image
from trainmaster.core.policy.patterns import BadPatternError, TextPattern, parse_pattern
from trainmaster.core.policy.rules import Allowed, AtMost, RequiredTag, RequiredTags, Rules, T
from trainmaster.core.policy.section import Section, shown
from trainmaster.core.request.s3_uri import S3Location, parse_s3

_LEAST_COST, _MOST_COST = Decimal("0.01"), Decimal(1_000_000_000)  # they only catch a slip of the finger
_MODE_HINT = "write true, or {mode: audit} to write violations down only"
# Source of the characters and lengths of tags: SageMaker API reference, Tag.
_TAG_KEY = re.compile(r"(?!(?i:aws:))[\w .:/=+@-]{1,128}")
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{0,256}")
_TYPE_GLOB = re.compile(r"ml\.[a-z0-9.*-]{1,61}")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,576}")
_KEY_GLOB = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9*-]+:[0-9*]{1,12}:key/[A-Za-z0-9*-]{1,128}")
_NAME_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
_KMS_HINT = "write arn:aws:kms:us-east-1:111122223333:key/ID; * stands for any characters but colons"
_ROLE_HINT = "write arn:aws:iam::111122223333:role/NAME, without *: roles are compared as they stand"
_IMAGE_HINT = "write registry/repository, e.g. 763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"
_PATTERN_HINT = r"write characters, [a-z], \d, groups, | and ? * + {n,m}; it has to match the whole value"
_TAG_KEY_HINT = "write 1 to 128 letters, digits, spaces and _ . : / = + - @, not beginning with aws:"
_S3_HINT = "write s3://bucket/ or s3://bucket/prefix/"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the value of one rule stands: bare under the rule's key, or in a mapping beside its mode."""

    section: Section
    key: str
    mode: Mode


def rules_of(parent: Section) -> Rules:
    """The mapping ``rules``, all of its mistakes noted."""
    section = parent.section("rules")
    rules = Rules(
        required_tags=_required_tags(section),
        instance_types=_allowed(section, "instance_types", _instance_type),
        max_instances=_max_instances(section),
        max_runtime=_max_runtime(section),
        max_estimated_cost_usd=_max_cost(section),
        spot_needs_checkpoint=_wanted(section, "spot_needs_checkpoint"),
        vpc_required=_wanted(section, "vpc_required"),
        network_isolation=_wanted(section, "network_isolation"),
        traffic_encryption=_wanted(section, "traffic_encryption"),
        single_az_when_distributed=_wanted(section, "single_az_when_distributed"),
        roles=_allowed(section, "roles", _role),
        images=_allowed(section, "images", _image),
        s3_prefixes=_allowed(section, "s3_prefixes", _s3_prefix),
        kms_keys=_allowed(section, "kms_keys", _kms_key),
        debugger_instances=_unwanted(section, "debugger_instances"),
        remote_debug=_unwanted(section, "remote_debug"),
        name_prefix=_allowed(section, "name_prefix", _name_prefix, under="one_of"),
        must_fit=_wanted(section, "must_fit"),
    )
    section.refuse_unknown()
    return rules


def roles_of(team: Section) -> Allowed[str] | None:
    """A team's ``roles``, which are enforced."""
    return _listed(_Place(team, "roles", Mode.ENFORCE), _role)


def images_of(team: Section) -> Allowed[Image] | None:
    """As ``roles_of``."""
    return _listed(_Place(team, "images", Mode.ENFORCE), _image)


def s3_prefixes_of(team: Section) -> Allowed[S3Location] | None:
    """As ``roles_of``."""
    return _listed(_Place(team, "s3_prefixes", Mode.ENFORCE), _s3_prefix)


def _place(rules: Section, key: str, under: str) -> _Place | None:
    """A bare value means enforce."""
    found = rules.value(key)
    if not isinstance(found, dict):
        return None if found is None else _Place(rules, key, Mode.ENFORCE)
    section = Section(found, rules.at(key), rules.findings)
    place = _Place(section, under, section.choice("mode", Mode.ENFORCE))
    if section.value(under) is None:
        rules.findings.refuse(section.at(under), "is missing", f"write what {key} is to be")
    section.refuse_unknown()
    return place


def _wanted(rules: Section, key: str) -> Mode | None:
    """A rule without a value: it asks for something. false: no such rule."""
    return None if rules.value(key) is False else _mode(rules, key)


def _unwanted(rules: Section, key: str) -> Mode | None:
    """A rule without a value that forbids: false could be meant as either, so it is a mistake."""
    if rules.value(key) is False:
        hint = "write true to refuse it, or leave the key out to allow it"
        rules.findings.refuse(rules.at(key), "does not say whether it is refused or the rule is off", hint)
        return None
    return _mode(rules, key)


def _mode(rules: Section, key: str) -> Mode | None:
    found = rules.value(key)
    if found is None or found is True:
        return Mode.ENFORCE if found else None
    if not isinstance(found, dict):
        rules.findings.refuse(
            rules.at(key), f"must be true or a mapping with a mode, not {shown(found)}", _MODE_HINT
        )
        return None
    section = Section(found, rules.at(key), rules.findings)
    mode = section.choice("mode", Mode.ENFORCE)
    section.refuse_unknown()
    return mode


def _max_instances(rules: Section) -> AtMost[int] | None:
    place = _place(rules, "max_instances", "value")
    if place is None:
        return None
    return AtMost(mode=place.mode, value=place.section.integer(place.key, default=1, least=1))


def _max_runtime(rules: Section) -> AtMost[timedelta] | None:
    place = _place(rules, "max_runtime", "value")
    if place is None:
        return None
    second = timedelta(seconds=1)
    return AtMost(mode=place.mode, value=place.section.duration(place.key, default=second, least=second))


def _max_cost(rules: Section) -> AtMost[Decimal] | None:
    place = _place(rules, "max_estimated_cost_usd", "value")
    if place is None:
        return None
    amount = place.section.amount(place.key, least=_LEAST_COST, most=_MOST_COST)
    return AtMost(mode=place.mode, value=amount or _LEAST_COST)


_Reader = Callable[[str], tuple[T | None, str]]
"""What a text of a list means, or None and a hint."""


def _allowed(rules: Section, key: str, read: _Reader[T], *, under: str = "allow") -> Allowed[T] | None:
    place = _place(rules, key, under)
    return None if place is None else _listed(place, read)


def _listed(place: _Place, read: _Reader[T]) -> Allowed[T] | None:
    section, key = place.section, place.key
    if section.value(key) is None:
        return None
    if section.value(key) == []:
        section.findings.refuse(
            section.at(key), "is empty: no job would be allowed", "name one, or leave it out"
        )
    return Allowed(mode=place.mode, allow=tuple(_read_each(section, key, read)))


def _read_each(section: Section, key: str, read: _Reader[T]) -> Iterator[T]:
    for path, item in section.items(key, "write a list"):
        meant, hint = read(item if isinstance(item, str) else "")
        if meant is None:
            section.findings.refuse(path, f"cannot be used: {shown(item)}", hint)
        else:
            yield meant


def _instance_type(text: str) -> tuple[str | None, str]:
    return text if _TYPE_GLOB.fullmatch(text) else None, "write a type or a glob, e.g. ml.g5.*"


def _role(text: str) -> tuple[str | None, str]:
    return text if _ROLE.fullmatch(text) else None, _ROLE_HINT


def _kms_key(text: str) -> tuple[str | None, str]:
    return text if _KEY_GLOB.fullmatch(text) else None, _KMS_HINT


def _name_prefix(text: str) -> tuple[str | None, str]:
    return text if _NAME_PREFIX.fullmatch(text) else None, "write 1 to 63 letters, digits and hyphens"


def _image(text: str) -> tuple[Image | None, str]:
    image = parse_image(text)
    return image if image is not None and image.registry else None, _IMAGE_HINT


def _s3_prefix(text: str) -> tuple[S3Location | None, str]:
    location = parse_s3(text)
    plain = location is not None and not {".", ".."} & set(location.parts) and "*" not in text
    return location if plain else None, _S3_HINT


def _tag_value(text: str) -> tuple[str | None, str]:
    return text if text and _TAG_VALUE.fullmatch(text) else None, "write a value that a tag can have"


def _required_tags(rules: Section) -> RequiredTags | None:
    place = _place(rules, "required_tags", "tags")
    if place is None:
        return None
    section, key = place.section, place.key
    found = section.value(key)
    if isinstance(found, list):
        tags = tuple(_named(path, one, section) for path, one in section.items(key, ""))
    else:
        inner = section.section(key)
        tags = tuple(_required_tag(inner, one) for one, _ in inner.entries())
    if found in ([], {}):
        section.findings.refuse(section.at(key), "requires nothing", "name a tag, or leave it out")
    return RequiredTags(mode=place.mode, tags=tags)


def _named(path: str, key: object, section: Section) -> RequiredTag:
    if not isinstance(key, str) or not _TAG_KEY.fullmatch(key):
        section.findings.refuse(path, f"is not the key of a tag: {shown(key)}", _TAG_KEY_HINT)
    return RequiredTag(key=str(key))


def _required_tag(tags: Section, key: str) -> RequiredTag:
    _named(tags.at(key), key, tags)
    section = tags.section(key)
    tag = RequiredTag(
        key=key, one_of=tuple(_read_each(section, "one_of", _tag_value)), pattern=_pattern(section)
    )
    if section.value("one_of") == []:
        section.findings.refuse(section.at("one_of"), "is empty: no value would do", "name the values")
    section.refuse_unknown()
    return tag


def _pattern(section: Section) -> TextPattern | None:
    found, path = section.value("pattern"), section.at("pattern")
    if found is None:
        return None
    if not isinstance(found, str) or not found:
        section.findings.refuse(path, f"is not a pattern: {shown(found)}", _PATTERN_HINT)
        return None
    try:
        return parse_pattern(found)
    except BadPatternError as error:
        section.findings.refuse(path, f"{error}: {shown(found)}", _PATTERN_HINT)
        return None
