"""Sections of options: each option in one of them, each room with the one that it reads."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from training.config import TrainConfig, sections
from training.config.choices import Strategy
from training.config.sections import DivisionOptions, ModelOptions, SampleOptions
from training.data.corpus import SyntheticLanguage, open_corpus
from training.ranks.meshes import MeshShape, mesh_shape
from training.ranks.world import World

_TRAINING = Path(__file__).parents[4] / "training"


def test_every_option_is_declared_in_one_section() -> None:
    tree = ast.parse((_TRAINING / "config/sections.py").read_text())
    declared = [
        entry.target.id
        for section in ast.walk(tree)
        if isinstance(section, ast.ClassDef)
        for entry in section.body
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
    ]
    assert sorted(declared) == sorted({*declared})
    assert sorted({*declared} - {"described"}) == sorted(TrainConfig().options)


def test_the_whole_may_be_given_wherever_a_section_is_wanted() -> None:
    kinds = [kind for name, kind in vars(sections).items() if name.endswith("Options")]
    assert len(kinds) == 11
    config = TrainConfig(batch_size=4, lr=1e-4)
    for kind in kinds:
        assert isinstance(config, kind)
        names = [field.name for field in fields(kind)]
        assert kind(**{name: getattr(config, name) for name in names})


def test_a_section_by_itself_is_enough() -> None:
    corpus = open_corpus(SampleOptions(seed=3, preset="tiny"), env={})
    assert corpus == SyntheticLanguage(vocabulary=256, seed=3)
    assert ModelOptions(sequence_length=64).shape.sequence_length == 64
    world = World(rank=0, size=4, local_rank=0, ranks_per_host=4, device=torch.device("cpu"))
    divided = DivisionOptions(strategy=Strategy.HYBRID_SHARD, shard_group_size=2)
    assert mesh_shape(divided, world) == MeshShape(copies=2, shards=2, tensor=1)


@pytest.mark.parametrize("room", ["data", "vision", "parallel", "ranks", "interop", "preemptible"])
def test_a_room_receives_a_section_and_not_the_whole(room: str) -> None:
    takers = [path.name for path in (_TRAINING / room).rglob("*.py") if "TrainConfig" in path.read_text()]
    assert takers == []
