"""`planner probe` with a stand-in for the machine: what is planned, resumed, written; and for real where torch is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

from planner.ask.calibrate import calibrate
from planner.ask.probe import probe
from planner.ask.validate import validate_file
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.evidence.rates import COLLECTIVES, LinkRow, predicted_seconds
from planner.layouts.candidate import Candidate
from planner.probe import backend
from planner.probe.backend import Result
from planner.probe.kernels import timed
from planner.probe.tasks import Machine, ProbeTask, tasks_of

GPU = Machine("cuda", "NVIDIA H100 80GB HBM3", gpus=8, ranks=32, memory=85.0e9, precisions=("bf16", "fp8"),
              capability="9.0", multiprocessors=132, software={"torch": "2.13.0", "nccl": "2.27.3"})
CPU = Machine("cpu", "x86_64", gpus=2, ranks=2, memory=16e9, precisions=("fp32",), software={"torch": "2.13.0"})
PRODUCTS, HOST, SHARE, LATENCY, INSIDE = 0.70, 41e9, 0.45, 2e-5, 300e9
"""Of the planted machine: share of the peak, way to the host, what its network keeps, a hop, bytes/s inside."""


EVIDENCE = Path(__file__).parents[1] / "evidence"
REINFORCED = "verl-fa-379,"


class StandIn:
    """A machine of planted rates, which may be stopped after some tasks."""

    leads = True

    def __init__(self, machine: Machine, stop_after: int = 10**6) -> None:
        self._machine, self._left, self.asked = machine, stop_after, list[str]()

    def machine(self) -> Machine:
        return self._machine

    def measured(self, tasks: Sequence[ProbeTask]) -> Iterator[Result]:
        for task in tasks:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            self.asked.append(task.key)
            yield task, "out of memory" if task.shape == (8192, 8192, 8192) and task.precision == "fp8" else took(task)


CATALOG = Catalog()


def took(task: ProbeTask) -> float:
    catalog = CATALOG
    if task.operation in COLLECTIVES and task.ranks > 8:
        node, gpu = catalog.node("dgx-h100"), catalog.gpu("h100-sxm")
        fabric = catalog.fabric(node.fabric).model_copy(update={"efficiency": SHARE, "latency": LATENCY})
        hardware = Candidate(node, gpu, catalog.fabric(str(node.scaleup)), fabric, node.nics)
        row = LinkRow(hardware, task.operation, task.ranks, task.shape[0], 1.0)  # type: ignore[arg-type]
        return float(predicted_seconds([row], catalog)[0])
    if task.operation in COLLECTIVES:
        return 1e-5 + task.bus_rate(1.0) / INSIDE
    rate = {"product": PRODUCTS * (1979e12 if task.precision == "fp8" else 989e12)}.get(task.operation, HOST)
    return task.work / rate


def test_a_dry_run_measures_nothing_and_says_what_is_left(tmp_path: Path) -> None:
    machine = StandIn(GPU)
    found = probe(tmp_path / "mine", Catalog(), machine, "2026-11", dry_run=True)
    assert not machine.asked
    assert not (tmp_path / "mine").exists()
    assert found.left == found.tasks == tuple(tasks_of(GPU))
    assert {task.ranks for task in found.tasks} == {1, 2, 4, 8, 32}
    assert 60 < found.seconds < 600


def test_a_second_run_goes_on_and_ends_with_the_same_files(tmp_path: Path) -> None:
    first, second, whole = StandIn(GPU, 30), StandIn(GPU), StandIn(GPU)
    with pytest.raises(KeyboardInterrupt):
        probe(tmp_path / "a", Catalog(), first, "2026-11")
    probe(tmp_path / "a", Catalog(), second, "2026-11")
    probe(tmp_path / "b", Catalog(), whole, "2026-11")
    assert first.asked + second.asked == whole.asked
    texts = [{path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
             for name in "ab"]
    assert texts[0] == texts[1]
    with pytest.raises(InputError, match="another machine"):
        probe(tmp_path / "a", Catalog(), StandIn(replace(GPU, gpus=4)), "2026-11")


def test_what_is_measured_takes_effect(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    found = probe(mine, Catalog(), StandIn(GPU), "2026-11")
    assert any("out of memory" in note for note in found.notes)
    catalog = Catalog([mine])
    gpu, inside, across = catalog.gpu("h100-sxm"), catalog.fabric("nvlink4-nvswitch"), catalog.fabric("ib-ndr")
    assert gpu.gemm_efficiency["bf16"] == pytest.approx(PRODUCTS, rel=0.01)
    assert gpu.pcie_bandwidth == pytest.approx(HOST, rel=0.01)
    assert gpu.memory_bandwidth == Catalog().gpu("h100-sxm").memory_bandwidth
    assert gpu.provenance("gemm_efficiency").kind == "measured"
    assert gpu.provenance("gemm_efficiency").source == (
        "measured by planner probe on 8 x NVIDIA H100 80GB HBM3, torch 2.13.0, nccl 2.27.3")
    assert {(c.operation, c.ranks) for c in inside.curves} >= {(o, n) for o in COLLECTIVES for n in (2, 4, 8)}
    assert across.efficiency == pytest.approx(SHARE, rel=0.1)
    assert across.latency == pytest.approx(LATENCY, rel=0.2)
    before, after = (validate_file(mine / "rates.csv", c).summary["seconds"] for c in (Catalog(), catalog))
    assert after.median_abs_error < 0.02 < before.median_abs_error  # type: ignore[union-attr]


def test_calibrate_reads_the_rows_of_a_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe(tmp_path / "mine", Catalog(), StandIn(GPU), "2026-11")
    assert main(["calibrate", str(tmp_path / "mine" / "rates.csv"), "-o", str(tmp_path / "own")]) == 0
    assert "Wrote the links" in capsys.readouterr().out
    again = calibrate([tmp_path / "mine" / "rates.csv"], tmp_path / "own", [], "2026-11")
    assert again.links
    assert Catalog([tmp_path / "own"]).fabric("ib-ndr").efficiency == pytest.approx(SHARE, rel=0.1)


def test_calibrate_tells_of_every_kind_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe(tmp_path / "mine", Catalog(), StandIn(GPU), "2026-11")
    head, *runs = (EVIDENCE / "rl.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "rl.csv").write_text(head + next(run for run in runs if run.startswith(REINFORCED)), encoding="utf-8")
    rows = [str(tmp_path / "mine" / "rates.csv"), str(tmp_path / "rl.csv")]
    assert main(["calibrate", *rows, "-o", str(tmp_path / "own"), "--as-of", "2026-11"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Wrote the links" in said
    assert "fitted the phases of reinforcement learning to 1 run" in said
    assert main(["calibrate", *rows, "-o", str(tmp_path / "own"), "--as-of", "2026-11", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["learned"] == 1 < found["links"] == found["rows"] - 1
    assert {Path(path).name for path in found["files"]} >= {"ib-ndr.yaml", "posttraining.yaml"}


def test_a_cpu_is_probed_too_and_gets_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = probe(tmp_path / "mine", Catalog(), StandIn(CPU), "2026-11")
    assert sorted(str(path.relative_to(tmp_path / "mine")) for path in found.files) == [
        "fabrics/probed-links.yaml", "rates.csv"]
    assert found.notes[0].startswith("no GPU")
    assert main(["catalog", "check", "--catalogs", str(tmp_path / "mine")]) == 0


def test_without_torch_it_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(backend, "import_module", absent)
    assert main(["probe", "-o", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err == "Error: planner probe needs torch: pip install 'planner[probe]'\n"


def test_a_line_that_was_cut_short_is_measured_again(tmp_path: Path) -> None:
    probe(tmp_path, CATALOG, StandIn(CPU), "2026-11")
    journal = tmp_path / "probe.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    again = StandIn(CPU)
    probe(tmp_path, CATALOG, again, "2026-11")
    assert len(again.asked) == 1
    assert len(journal.read_text(encoding="utf-8").splitlines()) == len(tasks_of(CPU)) + 1


@pytest.mark.parametrize(("line", "said"), [("{", "not a JSON line"), ('{"seconds": 1}', "expected a JSON object")])
def test_a_broken_journal_is_refused(tmp_path: Path, line: str, said: str) -> None:
    probe(tmp_path, Catalog(), StandIn(CPU), "2026-11")
    journal = tmp_path / "probe.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        probe(tmp_path, Catalog(), StandIn(CPU), "2026-11")


class QueuedGpu:
    """Stands in for torch: a device that works off its queue while the host takes longer to launch each kernel."""

    def __init__(self, *, kernel: float, launch: float, captures: bool) -> None:
        self.kernel, self.launch, self.captures = kernel, launch, captures
        self.host = self.device = 0.0
        self.captured: list[None] | None = None
        self.cuda, self.Stream, self.CUDAGraph = self, self._stream, self._graph

    def run(self) -> None:
        if self.captured is not None:
            self.captured.append(None)
            return
        self.host += self.launch
        self.device = max(self.device, self.host) + self.kernel

    def Event(self, *, enable_timing: bool) -> SimpleNamespace:  # noqa: N802 - torch's name
        event = SimpleNamespace(at=0.0)
        event.record = lambda: setattr(event, "at", max(self.device, self.host))
        event.synchronize = lambda: setattr(self, "host", max(self.device, self.host))
        event.elapsed_time = lambda other: (other.at - event.at) * 1e3
        return event

    def _stream(self) -> SimpleNamespace:
        return SimpleNamespace(wait_stream=lambda _: None)

    current_stream = _stream

    def stream(self, _: object) -> AbstractContextManager[None]:
        return nullcontext()

    def _graph(self) -> SimpleNamespace:
        graph = SimpleNamespace(runs=0)

        def replay() -> None:
            self.host += self.launch
            self.device = max(self.device, self.host) + graph.runs * self.kernel
        graph.replay = replay
        return graph

    @contextmanager
    def graph(self, graph: SimpleNamespace) -> Iterator[None]:
        if not self.captures:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.captured = []
        yield
        graph.runs, self.captured = len(self.captured), None


@pytest.mark.parametrize(("kernel", "captures", "measured"), [
    (10e-6, True, 10e-6), (10e-6, False, 40e-6), (2e-3, True, 2e-3), (2e-3, False, 2e-3)])
def test_what_the_host_takes_to_launch_is_left_out(kernel: float, captures: bool, measured: float) -> None:
    gpu = QueuedGpu(kernel=kernel, launch=40e-6, captures=captures)
    assert median(timed(gpu, "cuda", gpu.run)) == pytest.approx(measured, rel=0.02)


if find_spec("torch"):
    def test_this_machine_is_probed_for_real(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("planner.probe.kernels.SECONDS", 0.02)  # the figures of a busy machine are not looked at
        assert main(["probe", "-o", str(tmp_path / "mine"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert not found["left"]
        rows = (tmp_path / "mine" / "rates.csv").read_text(encoding="utf-8").splitlines()
        assert len(rows) == len(found["tasks"]) + 1
        assert main(["catalog", "check", "--catalogs", str(tmp_path / "mine")]) == 0
