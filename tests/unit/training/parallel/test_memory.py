"""Whether a model's state fits, and what would make it fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from training.config.choices import Precision, Strategy
from training.errors import DoesNotFitError
from training.parallel.memory import Memory, State, host_memory, remedies, room_for

GIB = 2**30
SEVENTY = State(  # of 70B on 8 GPUs
    elements=68_976_648_192 // 8,
    whole=68_976_648_192,
    precision=Precision.BF16,
    strategy=Strategy.FULL_SHARD,
    offloaded=False,
    on_gpu=True,
)
H100 = Memory(device=73 * GIB, host=200 * GIB)


@pytest.mark.parametrize(
    ("precision", "gib"), [(Precision.FP32, 128.5), (Precision.BF16, 128.5), (Precision.BF16_PURE, 80.3)]
)
def test_a_parameter_takes_16_bytes_or_10(precision: Precision, gib: float) -> None:
    assert replace(SEVENTY, precision=precision).bytes / GIB == pytest.approx(gib, abs=0.05)


def test_offloaded_state_has_the_room_of_the_host() -> None:
    assert room_for(SEVENTY, H100) == 73 * GIB
    assert room_for(replace(SEVENTY, offloaded=True), H100) == 200 * GIB
    assert room_for(SEVENTY, replace(H100, device=None)) is None


@pytest.mark.parametrize(
    ("state", "memory", "would_fit"),
    [
        pytest.param(
            SEVENTY,
            H100,
            ["15 ranks instead of 8", "cpu_offload true"],
            id="more ranks, or the memory of the host",
        ),
        pytest.param(
            SEVENTY,
            replace(H100, host=100 * GIB),
            ["15 ranks instead of 8"],
            id="the host is too small as well",
        ),
        pytest.param(
            SEVENTY,
            replace(H100, host=None),
            ["15 ranks instead of 8"],
            id="nobody knows what the host has",
        ),
        pytest.param(
            replace(SEVENTY, elements=SEVENTY.whole // 12),
            H100,
            [
                "15 ranks instead of 8",
                "precision bf16_pure",
                "cpu_offload true",
            ],
            id="all in bf16",
        ),
        pytest.param(
            replace(SEVENTY, elements=6_738_415_616, whole=6_738_415_616, strategy=Strategy.NO_SHARD),
            H100,
            ["strategy full_shard", "precision bf16_pure"],
            id="copies could be sharded; to offload them is refused",
        ),
        pytest.param(
            replace(SEVENTY, strategy=Strategy.HYBRID_SHARD),
            H100,
            ["15 ranks instead of 8 with strategy full_shard", "cpu_offload true"],
            id="groups stay as small, however many ranks there are",
        ),
        pytest.param(
            replace(SEVENTY, offloaded=True),
            Memory(device=73 * GIB, host=100 * GIB),
            ["11 ranks instead of 8", "precision bf16_pure"],
            id="offloaded, and the host is too small",
        ),
        pytest.param(
            replace(SEVENTY, elements=800, whole=800, strategy=Strategy.NO_SHARD),
            Memory(device=1600, host=0),
            ["strategy full_shard"],
            id="just as many ranks as are needed",
        ),
        pytest.param(
            replace(SEVENTY, elements=101, whole=800),
            Memory(device=1600, host=0),
            ["precision bf16_pure"],
            id="one row too many for the first rank",
        ),
        pytest.param(
            replace(SEVENTY, on_gpu=False),
            Memory(device=0, host=0),
            [],
            id="no room at all",
        ),
    ],
)
def test_what_would_make_room_for_the_state(state: State, memory: Memory, would_fit: list[str]) -> None:
    assert remedies(state, memory, ranks=8) == would_fit


def test_the_message_says_how_much_is_missing_and_what_would_fit() -> None:
    error = DoesNotFitError(
        need=100 * GIB,
        room=73 * GIB,
        where="of its GPU, 92% of the memory",
        would_fit=["strategy full_shard", "cpu_offload true"],
    )
    assert str(error) == (
        "weights, gradients and optimizer need 100.0 GiB on each rank, which has 73.0 GiB (of its GPU, 92% of"
        " the memory): 27.0 GiB too much; would fit: strategy full_shard; cpu_offload true"
    )
    alone = DoesNotFitError(need=100 * GIB, room=73 * GIB, where="of the host", would_fit=[])
    assert str(alone).endswith("too much; take more, or larger, instances")


def files(root: Path, **texts: str) -> Path:
    places = {
        "v2": "sys/fs/cgroup/memory.max",
        "v1": "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "free": "proc/meminfo",
    }
    for name, text in texts.items():
        place = root / places[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


MEMINFO = "MemTotal:       16384 kB\nMemFree:        1 kB\nMemAvailable:   8192 kB\n"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param({"free": MEMINFO}, 8192 * 1024, id="a machine"),
        pytest.param({"free": MEMINFO, "v2": "4096000\n"}, 4_096_000, id="a container"),
        pytest.param({"free": MEMINFO, "v2": "max\n"}, 8192 * 1024, id="a container without a limit"),
        pytest.param({"free": MEMINFO, "v1": "2048000\n"}, 2_048_000, id="an older kernel"),
        pytest.param({"free": MEMINFO, "v1": "9223372036854771712\n"}, 8192 * 1024, id="its way to say none"),
        pytest.param({"free": "MemTotal: 1 kB\n"}, None, id="a kernel that does not tell"),
        pytest.param({}, None, id="no Linux"),
    ],
)
def test_the_memory_of_the_host_is_what_system_and_container_leave(
    tmp_path: Path, texts: dict[str, str], found: int | None
) -> None:
    assert host_memory(files(tmp_path, **texts)) == found
