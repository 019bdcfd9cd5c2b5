"""Writes what a pool sets itself into a request, and says what that changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.pool_overrides import Overrides
from trainmaster.core.request.options import ALTERNATIVES, ANY_SUBNET
from trainmaster.core.request.request_shapes import SHAPES
from trainmaster.core.submission.request_places import Places

_VOLUME = "ResourceConfig.VolumeSizeInGB"
MOST_SHAPES = 40
"""Shapes of one job that a pass tries one after the other."""
MOST_TAGS: int = SHAPES["TagList"]["max"]
"""Tags that a request may have beside those that the queue adds at the start."""


def with_overrides(body: Mapping[str, Any], overrides: Overrides) -> Mapping[str, Any]:
    """Return the request as the pool has it; the request itself where the pool sets nothing.

    Args:
        body: A valid request.
        overrides: What the pool of its instance types sets.
    """
    changed: dict[str, Any] = {}
    if overrides.role_arn is not None:
        changed["RoleArn"] = overrides.role_arn
    if overrides.subnets:
        changed["VpcConfig"] = {
            "SecurityGroupIds": list(overrides.security_group_ids),
            "Subnets": list(overrides.subnets),
        }
    if overrides.volume_size_in_gb is not None:
        changed["ResourceConfig"] = {**body["ResourceConfig"], "VolumeSizeInGB": overrides.volume_size_in_gb}
    if overrides.tags:
        # In their places, so that messages about other tags name the indices of the request as it was sent.
        tags = {**_tags(body), **overrides.tags}
        changed["Tags"] = [{"Key": name, "Value": value} for name, value in tags.items()]
    return {**body, **changed} if changed else body


def fields_set_by_pool(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the fields in which the two requests differ, such as ``RoleArn`` and ``Tags.owner``."""
    fields = [name for name in ("RoleArn", "VpcConfig") if before.get(name) != after.get(name)]
    fields += [_VOLUME] if _volume(before) != _volume(after) else []
    tags_before, tags_after = _tags(before), _tags(after)
    fields += [
        f"Tags.{name}"
        for name, value in tags_after.items()
        if tags_before.get(name) != value and name != ALTERNATIVES  # whose shapes were measured, not set
    ]
    return tuple(fields)


def override_warnings(
    before: Mapping[str, Any], after: Mapping[str, Any], *, pool: str
) -> Iterator[FieldError]:
    """Yield what the pool changes, for the answer to a submission and to its dry run."""
    for name in fields_set_by_pool(before, after):
        yield FieldError(
            field=name,
            message=f"is set by pool {pool}: {_written(name, after)}",
            hint="nothing to do; pools[].overrides of the policy says so",
        )


def measured_warnings(places: Places, measured: str | None) -> Iterator[FieldError]:
    """Yield the shapes that ``cheapest`` stood for; ``measured`` says why, None where it was not written."""
    if measured is not None:
        listed = _tags(places.body)[ALTERNATIVES]
        hint = "nothing to do; list shapes in the tag to have another order"
        yield FieldError(
            field=places.tag(ALTERNATIVES), message=f"stands for {listed}. {measured}", hint=hint
        )


def override_violations(places: Places, overrides: Overrides) -> Iterator[FieldError]:
    """Yield what a request asks for that the pool's own fields leave no room for.

    Args:
        places: The request with the pool's fields in it.
        overrides: What the pool sets.
    """
    shapes = places.ask.shapes if overrides.subnets else ()
    for subnet in sorted({shape.subnet for shape in shapes if shape.subnet} - set(overrides.subnets)):
        allowed = ", ".join(overrides.subnets)
        message = f"names {subnet}, but the pool's jobs run in {allowed}"
        yield FieldError(field=places.tag(ALTERNATIVES), message=message, hint=f"write {allowed}")
    options = places.ask.options
    names_any = any(alternative.subnet == ANY_SUBNET for alternative in options.alternatives)
    if names_any and not places.body.get("VpcConfig", {}).get("Subnets"):
        message = f"has @{ANY_SUBNET}, which stands for the subnets of VpcConfig, and there is none"
        hint = f"write VpcConfig with the subnets to choose from, or leave @{ANY_SUBNET} out"
        yield FieldError(field=places.tag(ALTERNATIVES), message=message, hint=hint)
    if options.alternatives and len(places.ask.shapes) > MOST_SHAPES:
        message = f"stands for {len(places.ask.shapes)} shapes, at most {MOST_SHAPES} are tried"
        yield FieldError(field=places.tag(ALTERNATIVES), message=message, hint="name fewer types, or subnets")
    count = len(places.body.get("Tags", []))
    if count > MOST_TAGS:
        message = f"are {count} with those that the pool adds, and SageMaker leaves room for {MOST_TAGS}"
        yield FieldError(field="Tags", message=message, hint=f"leave out {count - MOST_TAGS}")


def volume_violations(before: Mapping[str, Any], overrides: Overrides) -> Iterator[FieldError]:
    """Yield a volume that is larger than the pool's, on which the job might run out of space.

    Args:
        before: The request as it was sent.
        overrides: What the pool sets.
    """
    wanted, most = _volume(before), overrides.volume_size_in_gb
    if wanted is not None and most is not None and wanted > most:
        message = f"is {wanted}, but the pool's jobs have {most}"
        yield FieldError(field=_VOLUME, message=message, hint=f"write at most {most}")


def _volume(body: Mapping[str, Any]) -> int | None:
    size: int | None = body["ResourceConfig"].get("VolumeSizeInGB")
    return size


def _written(name: str, body: Mapping[str, Any]) -> str:
    """Write a field of ``fields_set_by_pool`` as it is in a request."""
    if name.startswith("Tags."):
        return _tags(body)[name.removeprefix("Tags.")]
    return str(_volume(body)) if name == _VOLUME else _shown(body[name])


def _tags(body: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in body.get("Tags", [])}


def _shown(value: Any) -> str:  # noqa: ANN401  a role, or the two lists of a VpcConfig
    if isinstance(value, str):
        return value
    return "; ".join(f"{name} {', '.join(ids)}" for name, ids in sorted(value.items()))
