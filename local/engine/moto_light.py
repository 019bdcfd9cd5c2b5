"""Loads services of moto without what they bring along and the twin never uses."""

import sys
from importlib import import_module
from types import ModuleType


def load(service: str) -> None:
    """Import the service before moto does, if that saves something."""
    if service == "ssm":
        _import_without("moto.ssm.models", unused="moto.ec2", names=("ec2_backends",))


def _import_without(module: str, *, unused: str, names: tuple[str, ...]) -> None:
    """Let ``module`` find a stand-in where it imports ``names`` from: SSM wants all of EC2 for one call.

    That alone is half a second of the twin's start. Afterwards the real one can be imported by others.
    """
    if unused in sys.modules or module in sys.modules:
        return
    stand_in = ModuleType(unused)
    for name in names:
        setattr(stand_in, name, {})
    sys.modules[unused] = stand_in
    try:
        import_module(module)
    finally:
        del sys.modules[unused]
