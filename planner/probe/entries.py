"""What was measured, as files: rows of evidence, the fabrics of the node type, and what the GPU itself reaches."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.catalog.hardware import Gpu
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.load import Catalog
from planner.evidence.rates import RateRow, readable
from planner.fit.links import curve_file, fabric_files
from planner.probe.tasks import COLLECTIVES, Machine, ProbeTask
from planner.text_io import read_text
from planner.units import GIB
from planner.yaml_io import dump, parse

COLUMNS = ("id", "source", "as_of", "operation", "precision", "gpu", "gpus", "gpus_per_node", "shape", "bytes",
           "seconds")
ROWS, OWN_LINKS = "rates.csv", "probed-links"


@dataclass(frozen=True, slots=True)
class Probed:
    """The files of a probe by their path in its folder, and what was left out with the reason."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def gpu_of(machine: Machine, catalog: Catalog) -> Gpu | None:
    """Return the catalog's GPU that the driver's name means; none on a CPU, or where it is not just one."""
    if not machine.is_gpu:
        return None
    called = GpuNames(catalog).called(f"{machine.name} {machine.memory / 1e9:.0f}GB") or GpuNames(catalog).called(
        machine.name)
    return catalog.gpu(called) if called else None


def entries(machine: Machine, tasks: list[ProbeTask], measured: Mapping[str, float | str], catalog: Catalog,
            as_of: str) -> Probed:
    """Return the files of what has been measured. found: seconds of a task by its key, or why it has none."""
    took = {task: seconds for task in tasks if isinstance(seconds := measured.get(task.key), float)}
    software = ", ".join(f"{name} {version}" for name, version in machine.software.items() if version)
    source = f"measured by planner probe on {machine.gpus} x {machine.name}, {software}"
    gpu = gpu_of(machine, catalog)
    cells = [_cells(machine, task, seconds, gpu, source, as_of) for task, seconds in took.items()]
    files, notes = {ROWS: _csv(cells)}, list[str]()
    refused = sorted({f"{task.operation}: {why}" for task in tasks if isinstance(why := measured.get(task.key), str)})
    if gpu is None:
        files |= {f"fabrics/{OWN_LINKS}.yaml": text for text in _own_links(took, source, as_of)}
        notes.append(f"{machine.name} is no GPU of the catalog" if machine.is_gpu else "no GPU")
        notes[-1] += f": what was measured is in {ROWS}, and no entry but {OWN_LINKS} (between processes) is written"
        return Probed(files, (*notes, *refused))
    files[f"gpus/{gpu.name}.yaml"] = _gpu_file(machine, gpu, took, catalog, source, as_of, notes)
    given = [RateRow.model_validate({**cell, "run": cell, "measured": cell}) for cell in cells]
    rows, why = readable(given, catalog)
    if rows:
        files |= {f"fabrics/{name}": text for name, text in fabric_files(rows, catalog, source, as_of).items()}
    elif any(task.operation in COLLECTIVES for task in took):
        notes.append(f"no fabric is written: {why}")
    return Probed(files, (*notes, *refused))


def _cells(machine: Machine, task: ProbeTask, seconds: float, gpu: Gpu | None, source: str,
           as_of: str) -> dict[str, str]:
    together = task.operation in COLLECTIVES
    moved = together or len(task.shape) == 1
    values = ("probe-" + task.key, source, as_of, task.operation, task.precision, gpu.name if gpu else "",
              str(task.ranks), str(machine.gpus), "" if moved else "x".join(map(str, task.shape)),
              str(task.shape[0]) if moved else "", f"{seconds:.6g}")
    return {name: value for name, value in zip(COLUMNS, values, strict=True) if value}


def _own_links(took: Mapping[ProbeTask, float], source: str, as_of: str) -> Iterator[str]:
    """Yield the text of a fabric of its own: what joins the processes of a machine whose GPU the catalog lacks."""
    points: dict[tuple[str, int], dict[float, float]] = {}
    for task, seconds in took.items():
        if task.operation in COLLECTIVES:
            points.setdefault((task.operation, task.ranks), {})[task.shape[0]] = task.bus_rate(seconds)
    curves = [curve_file(operation, ranks, at) for (operation, ranks), at in sorted(points.items())]
    if curves:
        rate = max(rate for at in points.values() for rate in at.values())
        latency = min(seconds for task, seconds in took.items() if task.operation in COLLECTIVES)
        yield dump({"name": OWN_LINKS, "source": source, "as_of": as_of, "kind": "measured", "level": "scale-up",
                    "topology": "switch", "bandwidth": f"{rate / 1e9:.4g} GB/s", "efficiency": 1.0,
                    "latency": f"{latency * 1e6:.4g} us", "curves": curves})


def _csv(cells: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def _gpu_file(machine: Machine, gpu: Gpu, took: Mapping[ProbeTask, float], catalog: Catalog, source: str, as_of: str,
              notes: list[str]) -> str:
    """Return the GPU's own file with the share of its peak that products reach, its memory, and its way to the host."""
    figures: dict[str, object] = {"usable_memory": f"{machine.memory / GIB:.5g} GiB"}
    shares = dict(gpu.gemm_efficiency)
    for precision, peak in gpu.peak.items():
        rates = [task.work / seconds for task, seconds in took.items()
                 if task.operation == "product" and task.precision == precision]
        if rates and max(rates) <= peak:
            shares[precision] = float(f"{max(rates) / peak:.3g}")
        elif rates:
            notes.append(f"{precision}: products reach {max(rates) / 1e12:.4g} TFLOP/s, more than the catalog's peak "
                         f"of {peak / 1e12:.4g}: left as it was")
    figures["gemm_efficiency"] = dict(shares)
    hosts = [task.work / seconds for task, seconds in took.items() if task.operation.endswith(("_device", "_host"))]
    if hosts:
        figures["pcie_bandwidth"] = f"{min(hosts) / 1e9:.4g} GB/s"
    copies = [task.work / seconds for task, seconds in took.items() if task.operation == "memory"]
    if copies:
        notes.append(f"memory: copies reach {max(copies) / 1e9:,.0f} of {gpu.memory_bandwidth / 1e9:,.0f} GB/s "
                     f"({max(copies) / gpu.memory_bandwidth:.0%}); the entry keeps the data sheet's figure, of which "
                     "the planner takes a share")
    path = catalog.files("gpus")[gpu.name]
    data = dict(parse(read_text(path), str(path)).data)
    fact = {"source": source, "as_of": as_of, "kind": "measured"}
    return dump(data | figures | {"facts": data.get("facts", {}) | {name: dict(fact) for name in figures}})
