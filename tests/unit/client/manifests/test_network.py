"""EFA interfaces, as EC2 describes them."""

import gzip
import json
from importlib.resources import files

from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster_client.manifests.network import efa_interfaces


def test_the_table_of_efa_agrees_with_what_ec2_says() -> None:
    packed = files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()
    ec2 = json.loads(gzip.decompress(packed))
    described = {name: ec2[name.removeprefix("ml.")] for name in BY_TYPE if name.removeprefix("ml.") in ec2}
    assert len(described) > 60
    for name, one in described.items():
        said = one["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
        assert (name, efa_interfaces(name)) == (name, said)
    assert efa_interfaces("ml.p3.16xlarge") is None
