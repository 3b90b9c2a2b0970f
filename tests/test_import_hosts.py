"""What price files state of the host of an instance comes with its offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.test_import_prices import AWS, HUNT, hunted, info, offers, skypilot


@pytest.mark.parametrize(("cells", "host"), [
    ("8.0,64.0", {"vcpus": 8, "memory": "64 GiB", "disk": "1.9 TB"}), ("0,", {"disk": "1.9 TB"}),
    (",31.5", {"memory": "31.5 GiB", "disk": "1.9 TB"})])
def test_what_a_file_states_of_the_host_is_carried(cells: str, host: dict[str, Any], tmp_path: Path) -> None:
    def row(zone: str, drives: str) -> str:
        return f"g6e.xlarge,L40S,1.0,{cells},{info('L40S', 1, 46080)},1.861,,us-east-1,{zone},x86_64,ssd,True,{drives}"

    header = f"{AWS},LocalDiskType,NVMeSupported,LocalDiskSize,LocalDiskCount"
    # two drives in one zone, one in another: what every row has
    imported = skypilot(tmp_path, "aws", header, row("use1-az1", "1900.0,2.0"), row("use1-az2", "1900.0,"))
    assert offers(imported)["g6e.xlarge", "us-east-1", "on-demand"]["host"] == host
    without = skypilot(tmp_path, "aws", header, row("use1-az1", ","))
    assert offers(without)["g6e.xlarge", "us-east-1", "on-demand"]["host"]["disk"] == "none"


def test_gpuhunt_states_the_host_in_gb(tmp_path: Path) -> None:
    imported = hunted(tmp_path, "verda", HUNT, "1A100.22V,FIN-01,1.29,22,120.0,1,A100,80.0,False,,nvidia,,x86,{}",
                      "gpu_1x_a100_sxm4,us,1.99,30,214.8,1,A100,40.0,False,549.9,nvidia,,x86,{}")
    assert {key[0]: offer["host"] for key, offer in offers(imported).items()} == {
        "1A100.22V": {"vcpus": 22, "memory": "120 GB"},
        "gpu_1x_a100_sxm4": {"vcpus": 30, "memory": "214.8 GB", "disk": "549.9 GB"}}
