"""The kinds of names that a policy's author writes: names of pools and teams, and names that AWS gives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.image_names import Image, parse_image
from trainmaster.core.policy.kinds import ByName, Text, Whole, list_of, plain_text
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern, parse_principal
from trainmaster.core.request.s3_uri import S3Location, parse_s3

DEFAULT_TEAM = "default"
"""The team of every caller while the policy has no teams."""

NAME_HINT = "1 to 63 letters, digits and _ . : / = + @ -, beginning with a letter or digit"
# Names become parts of table keys (where `#` separates) and of tags; a pool called `-` is nobody's.
NAME = plain_text(r"[A-Za-z0-9][A-Za-z0-9_.:/=+@-]{0,62}", "is not a name", NAME_HINT)
INSTANCE_TYPE = plain_text(
    r"ml\.[a-z0-9-]+\.[a-z0-9-]+",
    "is not an instance type",
    "write it as SageMaker does, e.g. ml.g5.12xlarge",
)
COUNTS = ByName(INSTANCE_TYPE, Whole())
"""Instances by type. A type with 0 still belongs to the pool: that is how a type is drained."""

_PRINCIPAL_HINT = "write arn:aws:iam::111122223333:role/NAME (or :user/NAME); * may stand only inside NAME"
_USER = "is a user: a training job tells the role that it runs under, not who started it"
_WIDE = "matches every role of the account: a caller's session does not tell the role's path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The kind of value that names callers, or only the roles that jobs run under."""

    only_roles: bool = False

    def read(self, written: object, at: Location) -> PrincipalPattern | None:
        pattern = parse_principal(written) if isinstance(written, str) else None
        if pattern is None:
            at.refuse(f"is not a role or user: {shown(written)}", _PRINCIPAL_HINT)
        elif self.only_roles and pattern.kind is not PrincipalKind.ROLE:
            at.refuse(_USER, "write the role, arn:aws:iam::111122223333:role/NAME")
        elif not self.only_roles and pattern.is_wider_than_it_looks:
            at.warn(_WIDE, "name the roles, e.g. role/vision-*")
        return pattern


CALLERS = list_of(Principal(), "write a list of ARNs")
JOB_ROLES = list_of(Principal(only_roles=True), "write a list of ARNs")


def _image(text: str) -> Image | None:
    image = parse_image(text)
    return image if image is not None and image.registry else None


def _s3_prefix(text: str) -> S3Location | None:
    location = parse_s3(text)
    plain = location is not None and not {".", ".."} & set(location.parts) and "*" not in text
    return location if plain else None


# What rules list.
_UNUSABLE = "cannot be used"
ROLE = plain_text(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,576}",
    _UNUSABLE,
    "write arn:aws:iam::111122223333:role/NAME, without *: roles are compared literally",
)
IMAGE = Text(
    shape=r"[A-Za-z0-9.-]+(:[0-9]{1,5})?/[a-z0-9][a-z0-9._/-]*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,128})?",
    parse=_image,
    refusal=_UNUSABLE,
    hint="write registry/repository, e.g. 763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training",
)
S3_PREFIX = Text(
    shape=r"s3://[a-z0-9._:-]{1,255}(/[^*]*)?",
    parse=_s3_prefix,
    refusal=_UNUSABLE,
    hint="write s3://bucket/ or s3://bucket/prefix/",
)
TYPE_GLOB = plain_text(r"ml\.[a-z0-9.*-]{1,61}", _UNUSABLE, "write a type or a glob, e.g. ml.g5.*")
KMS_KEY_GLOB = plain_text(
    r"arn:aws[a-z-]*:kms:[a-z0-9*-]+:[0-9*]{1,12}:key/[A-Za-z0-9*-]{1,128}",
    _UNUSABLE,
    "write arn:aws:kms:us-east-1:111122223333:key/ID; * stands for any characters but colons",
)
NAME_PREFIX = plain_text(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,62}", _UNUSABLE, "write 1 to 63 letters, digits and hyphens"
)
# Source of the characters and lengths of tags: SageMaker API reference, Tag.
TAG_KEY = plain_text(
    r"(?![aA][wW][sS]:)[\w .:/=+@-]{1,128}",
    "is not the key of a tag",
    "write 1 to 128 letters, digits, spaces and _ . : / = + - @, not beginning with aws:",
)
TAG_VALUE = plain_text(r"[\w .:/=+@-]{1,256}", _UNUSABLE, "write a value that a tag can have")


class OwnsTypes(Protocol):
    """A pool, as far as its instance types are concerned."""

    @property
    def capacity(self) -> Mapping[str, int]: ...

    @property
    def spot_capacity(self) -> Mapping[str, int]: ...


def refuse_repeated_names(names: Iterable[str], at: Location) -> None:
    """Refuse each name that an earlier item of the list has; a name that could not be read is empty."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index and name:
            message = f"{at.item(first[name]).path} already has the name {shown(name)}"
            at.item(index).below("name").refuse(message, "give each its own name")


def refuse_shared_types(pools: Sequence[OwnsTypes], at: Location) -> None:
    """Refuse a type that two pools have: its jobs could not tell which pool they wait in."""
    owner: dict[str, int] = {}
    for index, pool in enumerate(pools):
        for key_, capacity in (("capacity", pool.capacity), ("spot_capacity", pool.spot_capacity)):
            for instance_type in capacity:
                first = owner.setdefault(instance_type, index)
                if first != index:
                    message = f"already belongs to {at.item(first).path}"
                    place = at.item(index).below(key_).below(instance_type)
                    place.refuse(message, "leave the type in one pool")


def check_teams(named: Iterable[str], teams: list[str], at: Location) -> None:
    """Refuse teams that the policy does not have: their quotas would keep instances idle.

    Warn of any team but ``default`` while the policy has no teams.
    """
    for team in named:
        if teams and team not in teams:
            known = f"teams of the policy: {', '.join(teams)}"
            at.below(team).refuse(f"there is no team {shown(team)}", nearest(team, teams) or known)
        elif not teams and team != DEFAULT_TEAM:
            message = f"team {shown(team)} has no members: without teams every caller is in {DEFAULT_TEAM}"
            at.below(team).warn(message, "write the teams")
