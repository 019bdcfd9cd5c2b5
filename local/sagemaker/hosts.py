"""The hosts of a job: what they are called, and what one of them knows of the others.

All are processes of this machine, so a host's name does not resolve; a port of 127.0.0.1 that only this job
uses stands for the address where its hosts meet.
"""

import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from local.sagemaker.spec import InstanceGroup

ADDRESS = "127.0.0.1"
NETWORK_INTERFACE = "lo"

_FIRST_PORT = 20_000
_PORTS = 10_000
"""Below those that the system gives to outgoing connections, so none takes it before the job does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    name: str
    group: InstanceGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A host among those of its job."""

    host: Host
    hosts: tuple[Host, ...]
    master_port: int
    """Port of ``ADDRESS`` on which the first host can listen for the others."""

    @property
    def rank(self) -> int:
        return self.hosts.index(self.host)

    @property
    def names(self) -> list[str]:
        return [host.name for host in self.hosts]

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the instance groups by name, as resourceconfig.json has them."""
        return {
            group.name: {
                "instance_group_name": group.name,
                "instance_type": group.instance_type,
                "hosts": [host.name for host in self.hosts if host.group == group],
            }
            for group in dict.fromkeys(host.group for host in self.hosts)
        }


def hosts_of(groups: Sequence[InstanceGroup]) -> tuple[Host, ...]:
    """Name the hosts algo-1, algo-2 and so on, group after group."""
    all_groups = [group for group in groups for _ in range(group.count)]
    return tuple(Host(name=f"algo-{number}", group=group) for number, group in enumerate(all_groups, start=1))


class Ports:
    """Hands out unused ports of this machine, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = os.getpid() % _PORTS  # twins that run side by side begin at different ones

    def take(self) -> int:
        """Raises ``OSError`` when every port is in use."""
        with self._lock:
            for _ in range(_PORTS):
                port = _FIRST_PORT + self._next
                self._next = (self._next + 1) % _PORTS
                if _is_free(port):
                    return port
        raise OSError(f"no port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True
