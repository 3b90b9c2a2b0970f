"""SkyPilot's own reading of a task, against a catalog that has the plan's offer and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import mkdtemp

_HOME = Path(mkdtemp(prefix="planner-sky-"))
os.environ.update(HOME=str(_HOME), SKYPILOT_DISABLE_USAGE_COLLECTION="1")
_CATALOG = _HOME / ".sky" / "catalogs" / "v8"
_COLUMNS = ("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
            "AvailabilityZone,Arch,LocalDiskType,LocalDiskSize,LocalDiskCount,NVMeSupported")


def _put(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write("\n".join(lines) + "\n")


def resolve(folder: Path) -> dict[str, object]:
    """Return the nodes, the offer, and whether it is spot, that a task comes to."""
    with (folder / "launch.json").open() as file:
        manifest = json.load(file)
    offer = manifest["offer"]
    accelerator, name = offer.pop("accelerator"), offer.pop("skypilot")
    name = name or accelerator or "GPU"
    gpus = max(part.get("gpu", {}).get("node", part["gpus"]) for part in manifest["parts"])
    _put(_CATALOG / "common" / "metadata.csv", "GPU,MemoryGB,Manufacturer", f"{name},80,NVIDIA")
    _put(_CATALOG / "common" / "accelerators.csv", "AcceleratorName,Clouds", f"{name},\"['{offer['provider']}']\"")
    region = offer["region"] if "-" in offer["region"] else "us-east-1"
    _put(_CATALOG / offer["provider"] / "vms.csv", _COLUMNS,
         f"{offer['instance']},{name},{gpus}.0,64.0,512.0,,10.0,5.0,{region},{region}a,x86_64,,,,")
    import sky

    service = folder / "service.yaml"
    task = sky.Task.from_yaml(str(service if service.exists() else folder / "sky.yaml"))
    (resources,) = task.resources
    made = {"provider": str(resources.cloud).lower(), "instance": resources.instance_type,
            "region": resources.region or offer["region"], "term": "spot" if resources.use_spot else offer["term"]}
    if made["instance"] is None:
        made["instance"] = offer["instance"]
        (accelerators,) = resources.accelerators.values()
        assert accelerators == gpus, f"it rents {accelerators} GPUs a node, the plan {gpus}"
    assert made == offer, f"it rents {made}, the plan {offer}"
    replicas = task.service.min_replicas if task.service else 1
    return {"cluster": [replicas * task.num_nodes, None]}
