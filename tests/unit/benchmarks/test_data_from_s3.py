"""The small S3 of the benchmark, and that all its readers give the same bytes."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmarks.data_from_s3 import files, readers
from benchmarks.data_from_s3.__main__ import main
from benchmarks.data_from_s3.medians import ratio, shown
from benchmarks.data_from_s3.readers import READERS
from benchmarks.data_from_s3.rounds import CHECKED, SHARDS, Place, ceiling, resume_step
from benchmarks.data_from_s3.sequential import SEQUENTIAL
from benchmarks.data_from_s3.server import COUNTS, Network, Server
from benchmarks.data_from_s3.source import Source
from benchmarks.data_from_s3.worker import measured, ranges_of, serve
from tests.integration.training.buckets import CREDENTIALS
from training.data.s3 import s3_place

AMOUNT = files.Amount(shards=2, shard_bytes=2**20 + 2**18, samples=24, sample_bytes=1000, samples_a_shard=8)
LARGE = 2 * AMOUNT.shard_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("s3")
    files.written(found / "bench", AMOUNT)
    return found


@pytest.fixture
def endpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=Server(folder).serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": url}.items():
            monkeypatch.setenv(name, value)
        yield url
        listener.shutdown(socket.SHUT_RDWR)


def _source(folder: Path, endpoint: str) -> Source:
    bench = folder / "bench"
    return Source(
        bucket="bench", folder=bench, region="us-east-1", endpoint=endpoint, files=files.described(bench)
    )


def _counts(endpoint: str) -> dict[str, Any]:
    with urlopen(endpoint + COUNTS) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def test_the_server_answers_ranges_conditions_and_absence_as_s3_does(folder: Path, endpoint: str) -> None:
    content = (folder / "bench/large/shard-00000.bin").read_bytes()
    url = f"{endpoint}/bench/large/shard-00000.bin"
    with urlopen(Request(url, headers={"Range": "bytes=10-19"})) as answer:
        etag = answer.headers["ETag"]
        assert (answer.status, answer.read()) == (206, content[10:20])
        assert answer.headers["Content-Range"] == f"bytes 10-19/{len(content)}"
    with urlopen(Request(url, headers={"Range": f"bytes={len(content) - 5}-{len(content) + 5}"})) as answer:
        assert answer.read() == content[-5:]
    with urlopen(Request(url, headers={"If-Match": etag})) as answer:
        assert (answer.status, answer.read()) == (200, content)
    for headers, path, status in [
        ({"If-Match": '"other"'}, url, 412),
        ({"Range": f"bytes={len(content)}-"}, url, 416),
        ({}, url + "x", 404),
        ({}, f"{endpoint}/other/x", 404),
    ]:
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(path, headers=headers))
        with caught.value:
            assert caught.value.code == status


def test_a_listing_is_of_one_folder_and_comes_in_pages(
    folder: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.data_from_s3.server._PAGE", 10)
    _counts(endpoint)
    sizes = s3_place("s3://bench/small").sizes()
    assert sizes == {f"sample-{number:05d}": 1000 for number in range(24)}
    assert _counts(endpoint)["requests"] == {"LIST": 3}


def test_the_range_reader_asks_for_each_block_once_over_few_connections(folder: Path, endpoint: str) -> None:
    reader = readers.RangeReader(_source(folder, endpoint))
    _counts(endpoint)
    assert sum(len(one) for one in reader.large()) == LARGE
    counts = _counts(endpoint)
    assert counts["requests"] == {"LIST": 1, "GET": 5}  # the index and two blocks of each shard
    assert counts["bytes"] - LARGE < 10_000


@pytest.mark.parametrize("name", [*READERS, *SEQUENTIAL])
def test_every_reader_gives_the_same_bytes(name: str, folder: Path, endpoint: str) -> None:
    bench = folder / "bench"
    reader = (READERS | SEQUENTIAL)[name](_source(folder, endpoint))
    large = b"".join((bench / "large" / one).read_bytes() for one in reader.files.large)
    assert b"".join(reader.large()) == large
    small = sorted((bench / "small" / one).read_bytes() for one in reader.files.small)
    assert sorted(reader.small()) == small
    if name in READERS:  # the others are measured on whole files alone
        assert sorted(reader.samples()) == small
    if reader.seeks:
        ranges = ranges_of(reader, 3)
        starts = [one.file * AMOUNT.shard_bytes + one.offset for one in ranges]
        assert reader.batch(ranges) == [large[start : start + 4096] for start in starts]


def test_a_resume_costs_a_stream_all_that_it_passes_by(folder: Path, endpoint: str) -> None:
    source = _source(folder, endpoint)
    step = resume_step(source.files)
    assert step == 11
    stream = measured(lambda: readers.BotoStream(source), "batch", step=step)
    assert stream["bytes"] >= LARGE / 2
    ranges = measured(lambda: readers.BotoRanges(source), "batch", step=step)
    assert (ranges["pieces"], ranges["bytes"]) == (32, 32 * 4096)


def test_a_worker_answers_line_by_line(folder: Path, endpoint: str) -> None:
    told = io.StringIO()
    questions = ['{"case": "large", "checked": true}\n', '{"case": "samples"}\n', '{"case": "objects"}\n']
    serve(lambda: readers.PlainFiles(_source(folder, endpoint)), questions, told)
    found = [json.loads(line) for line in told.getvalue().splitlines()]
    assert [one["bytes"] for one in found] == [LARGE, 8 * 24_000, 24_000]
    assert [one["pieces"] for one in found] == [4, 8 * 24, 24]


def test_the_ceiling_reads_every_byte(folder: Path, endpoint: str) -> None:
    bench = folder / "bench"
    place = Place(bucket="bench", folder=bench, files=files.described(bench), endpoint=endpoint)
    _counts(endpoint)
    assert ceiling(place)["mb_per_second"] > 0
    assert _counts(endpoint)["bytes"] == LARGE


def test_a_ratio_is_within_a_round_and_its_median_counts() -> None:
    def one(ours: float, theirs: float) -> dict[str, Any]:
        return {
            "ours": {CHECKED: {"cpu": ours}, SHARDS: {"cpu": 1.0}},
            "theirs": {CHECKED: {"cpu": theirs}, SHARDS: {"cpu": 4.0}},
        }

    rounds = [one(1.0, 2.0), one(10.0, 30.0), one(1.0, 0.5)]
    assert ratio(rounds, CHECKED, "ours", "theirs") == 2.0
    assert ratio(rounds, CHECKED, "ours", "theirs", of=SHARDS) == 4.0


def test_the_files_are_the_same_each_time_and_are_written_once(tmp_path: Path, folder: Path) -> None:
    files.written(tmp_path, AMOUNT)
    for path in tmp_path.rglob("*.bin"):
        assert path.read_bytes() == (folder / "bench" / path.relative_to(tmp_path)).read_bytes()
    (tmp_path / "large/shard-00000.bin").write_bytes(b"kept")
    files.written(tmp_path, AMOUNT)
    assert (tmp_path / "large/shard-00000.bin").read_bytes() == b"kept"


def test_a_connection_that_is_paced_waits_for_what_it_has_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("benchmarks.data_from_s3.server.time.monotonic", lambda: 10.25)
    monkeypatch.setattr("benchmarks.data_from_s3.server.time.sleep", waits.append)
    network = Network(wait_seconds=0.03, bytes_a_second=100e6)
    network.paced(10.0, 50_000_000)
    network.paced(10.0, 10_000_000)
    assert waits == [pytest.approx(0.25), 0.0], "half a second for 50 MB; 10 MB are behind already"


@pytest.mark.thorough
def test_behind_a_network_no_reader_loses_bytes_and_requests_have_a_price(tmp_path: Path) -> None:
    arguments = ["--network", "--quick", "--folder", str(tmp_path), "--json", str(tmp_path / "net.json")]
    assert main([*arguments, "--readers", "range reader"]) == 0
    report = json.loads((tmp_path / "net.json").read_bytes())
    checks = {one["id"]: one["ok"] for one in report["checks"]}
    assert checks == {"complete": True, "large-file": None, "objects-of-1-mb": None}
    objects = report["facts"]["readers"]["mountpoint-like"]["small-objects"]
    assert objects["requests"] == 200
    assert objects["usd_a_terabyte"] == pytest.approx(0.0004 / 1000 * 1e12 / 10_000)


@pytest.mark.thorough
def test_the_whole_benchmark_compares_and_names_what_needs_aws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--folder", str(tmp_path / "files"), "--json", str(tmp_path / "data.json")]
    assert main([*arguments, "--readers", "range reader", "boto3 stream"]) == 0
    printed = capsys.readouterr().out
    assert "the server's ceiling" in printed
    assert "Mountpoint for Amazon S3 0.11 s, goofys 0.08 s" in printed
    report = json.loads((tmp_path / "data.json").read_bytes())
    checks = {one["id"]: one for one in report["checks"]}
    assert checks["complete"]["ok"]
    skipped = {name for name, one in checks.items() if one["ok"] is None}
    assert skipped == {
        "large-shards",
        "small-samples",
        "file-mode",
        "fast-file-mode",
        "mountpoint",
        "amazon-s3",
    }
    assert "--mount /mnt/s3" in checks["mountpoint"]["skipped"]
    assert set(report["facts"]["ratios"]["large, all checked"]) == {"boto3 stream"}
    assert len(shown(report["facts"]["medians"])) == 16
    mounted = [*arguments, "--mount", str(tmp_path / "files/bench")]
    assert main(mounted) == 0
    assert "plain files" in capsys.readouterr().out
