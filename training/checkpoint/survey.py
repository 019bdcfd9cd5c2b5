"""Which checkpoints are whole, from what each host sees of them.

A file counts as lost when no host has it whole: the checkpoint is torn, and the one before it is next.
When some hosts have it and others do not, nothing is lost, so going back would throw work away and the
hosts must get the same view first: that is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from training.checkpoint.manifest import ALGORITHM, MANIFEST, Manifest
from training.checkpoint.store import CheckpointStore, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One checkpoint as one host sees it."""

    manifest: bytes | None
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    name: str
    reason: str
    was_published: bool = True
    """It has a manifest, which is written when all else is durable."""
    lacks_files: bool = False
    """And that is all that is wrong: an upload that was interrupted leaves it so, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Neither to be loaded nor to be passed over."""

    name: str
    reason: str


Finding: TypeAlias = Whole | Torn | Refused
View: TypeAlias = Mapping[str, Sight]
"""By the name of the checkpoint."""

_NOTHING = Sight(manifest=None, sizes={})


def view_of(store: CheckpointStore) -> View:
    """What this host sees."""
    return {
        name: Sight(manifest=store.read(f"{name}/{MANIFEST}"), sizes=dict(store.sizes(name)))
        for name in store.checkpoints()
    }


def findings(views: Mapping[str, View]) -> list[Finding]:
    """What is there, the newest first. ``views`` are by host."""
    # Names have their steps in as many digits, so they sort as their steps do.
    names = sorted({name for view in views.values() for name in view}, key=_by_step, reverse=True)
    return [
        _finding(name, {host: view.get(name, _NOTHING) for host, view in views.items()}) for name in names
    ]


def is_work_lost(torn: Sequence[Torn]) -> bool:
    """Whether there was a whole checkpoint, where only torn ones are left.

    The only one that was ever published may lack files because its upload was interrupted: it was never
    whole where it is now, and what it held is as little as can be lost.
    """
    published = [one for one in torn if one.was_published]
    return len(published) > 1 or any(not one.lacks_files for one in published)


def _by_step(name: str) -> tuple[int, str]:
    return len(name), name


def _finding(name: str, sights: Mapping[str, Sight]) -> Finding:
    try:
        text, manifest = _manifest(sights)
    except FileNotFoundError:
        return Torn(name=name, reason=f"{MANIFEST} is missing", was_published=False)
    except ValueError:
        return Torn(name=name, reason=f"{MANIFEST} cannot be read")
    except KeyError:
        return Refused(name=name, reason=f"its {MANIFEST} is not one of this program")
    if (foreign := _foreign(name, manifest)) is not None:
        return Refused(name=name, reason=foreign)
    problems = {
        host: dict(_problems(manifest, sight, is_same=sight.manifest == text))
        for host, sight in sights.items()
    }
    for file in (MANIFEST, *manifest.files):
        bad = {host: found[file] for host, found in problems.items() if file in found}
        if len(bad) == len(sights):
            every = {what for found in problems.values() for what in found.values()}
            return Torn(
                name=name, reason=f"{file} {next(iter(bad.values()))}", lacks_files=every == {_MISSING}
            )
    lacking = [f"on {host} {file} {what}" for host, found in problems.items() for file, what in found.items()]
    if lacking:
        return Refused(name=name, reason="; ".join(lacking[:_SHOWN]) + _more(len(lacking) - _SHOWN))
    return Whole(name=name, manifest=manifest)


_SHOWN = 3
_MISSING = "is missing"


def _more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""


def _foreign(name: str, manifest: Manifest) -> str | None:
    """Why this manifest is not to be used here."""
    if name_of(manifest.step) != name:
        return f"its {MANIFEST} is that of {name_of(manifest.step)}"
    algorithm = manifest.hashes["algorithm"] if manifest.hashes else ALGORITHM
    if algorithm != ALGORITHM:
        return f"its hashes are by {algorithm}, and this program knows {ALGORITHM}"
    return None


def _manifest(sights: Mapping[str, Sight]) -> tuple[bytes, Manifest]:
    """The first that can be read. Raises FileNotFoundError, ValueError or KeyError where there is none."""
    texts = [sight.manifest for sight in sights.values() if sight.manifest is not None]
    if not texts:
        raise FileNotFoundError(MANIFEST)
    for text in texts[:-1]:
        try:
            return text, Manifest.parsed(text)
        except ValueError:
            continue
    return texts[-1], Manifest.parsed(texts[-1])


def _problems(manifest: Manifest, sight: Sight, *, is_same: bool) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it) on one host."""
    if not is_same:
        yield MANIFEST, _MISSING if sight.manifest is None else "is another one"
    for file, size in manifest.files.items():
        found = sight.sizes.get(file)
        if found is None:
            yield file, _MISSING
        elif found != size:
            yield file, f"has {found} bytes of {size}"
