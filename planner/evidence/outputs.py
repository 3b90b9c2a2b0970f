"""What other tools write, as rows of evidence: nccl-tests, `vllm bench serve`, SGLang's bench_serving, GuideLLM.

They leave open what a row must say, such as the GPU of a load test, so that is given beside the file. Sources:
NVIDIA/nccl-tests src/common.cu, vllm-project/vllm vllm/benchmarks/serve.py, sgl-project/sglang bench_serving.py, and
vllm-project/guidellm docs/guides/outputs.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.evidence.engine_metrics import metrics_row
from planner.evidence.printed_tests import TITLE, printed_tests
from planner.evidence.served_plan import as_one_replica

Cells = dict[str, str]
OPERATIONS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
              "alltoall": "alltoall"}
"""Collectives by the names of the programs of nccl-tests, less their _perf."""
STARTING, HEADER, RANK, END = "# Collective test starting:", "busbw", "Rank", "# Avg bus bandwidth"


def output_rows(text: str, path: Path, stated: Mapping[str, str]) -> tuple[str, list[Cells]] | None:
    """Return the kind and the cells of every run in another tool's output; none where the text is a CSV.

    stated: columns that the file leaves open. Raises InputError.
    """
    start = text.lstrip()[:1]
    counted = metrics_row(text, path)
    if start in ("{", "[") or counted is not None or TITLE in text:
        # an engine counts of itself, a load test of all replicas
        rows = [as_one_replica(row, path) for row in _load_tests(text, path)] if counted is None else [
            as_one_replica(counted, path, shared=())]
        if not rows:
            raise InputError("no load test in it: expected what vllm bench serve or bench_serving write or print, or "
                             "GuideLLM's JSON", file=str(path))
        if missing := [name for name in ("gpu", "gpus") if name not in {**rows[0], **stated}]:
            raise InputError(f"a load test does not say {' or '.join(missing)}: add --run gpu=h100-sxm,gpus=1,tp=1, or "
                             "put the plan.json of planner launch beside it", file=str(path))
        return "serve_throughput", [_whole(row, number, path, stated) for number, row in enumerate(rows, 1)]
    if any(line.lstrip().startswith("#") and "algbw" in line and HEADER in line for line in text.splitlines()):
        rows = list(_tables(text, path, stated))
        return "rates", [_whole(row, number, path, stated) for number, row in enumerate(rows, 1)]
    return None


def _whole(row: Cells, number: int, path: Path, stated: Mapping[str, str]) -> Cells:
    return {"id": f"{path.stem}-{number}", **row, **stated}


@dataclass(slots=True)
class _PrintedTable:
    """One test of nccl-tests as far as it is read."""

    operation: str | None = None
    hosts: list[str] = field(default_factory=list)
    gpu: str = ""
    columns: list[str] = field(default_factory=list)


def _tables(text: str, path: Path, stated: Mapping[str, str]) -> Iterator[Cells]:
    """Yield the rows of every test in the output of nccl-tests or rccl-tests: out of place, microseconds."""
    table = _PrintedTable()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if line.startswith(STARTING):
            table.operation = words[-1].removesuffix("_perf")
        elif line.startswith("# nThread"):
            table = _PrintedTable(table.operation)
        elif line.startswith(END):
            table = _PrintedTable()
        elif words[:1] == ["#"] and RANK in words[1:2]:
            table.hosts.append(words[words.index("on") + 1] if "on" in words else "")
            table.gpu = line.rpartition("]")[2].strip()
        elif words[:1] == ["#"] and HEADER in words:
            table.columns = words[1:]
        elif table.columns and words[:1] and words[0].isdecimal() and len(words) >= len(table.columns) // 2:
            yield _row(table, words, path, number, stated)


def _row(table: _PrintedTable, words: list[str], path: Path, line: int, stated: Mapping[str, str]) -> Cells:
    at = {name: place for place, name in reversed(list(enumerate(table.columns)))}
    try:
        size, took, busbw, algbw = (float(words[at[name]]) for name in ("size", "time", "busbw", "algbw"))
    except (KeyError, ValueError, IndexError):
        raise InputError("expected size, time, algbw and busbw of nccl-tests", file=str(path), line=line) from None
    ranks = len(table.hosts)
    redop = words[at["redop"]] if "redop" in at else ""
    operation = stated.get("operation") or table.operation or _operation(redop, ranks, busbw, algbw)
    if operation not in OPERATIONS:
        raise InputError(f"{operation or 'which collective it is, the table does not say'}: expected one of "
                         f"{', '.join(OPERATIONS)}; add --run operation=alltoall", file=str(path), line=line)
    cells = {"source": "nccl-tests", "operation": operation, "bytes": f"{size:.0f}", "seconds": f"{took * 1e-6:.6g}"}
    if ranks:
        cells |= {"gpus": f"{ranks}", "gpus_per_node": f"{ranks // len(set(table.hosts))}", "gpu": table.gpu}
    return cells


def _operation(redop: str, ranks: int, busbw: float, algbw: float) -> str:
    """Return what a table without a title must be: a sum moves each byte once or twice; else it may be two."""
    if redop != "sum" or ranks < 2 or not algbw:
        return "all_reduce" if redop == "sum" else ""
    return "all_reduce" if busbw / algbw > 1.5 * (ranks - 1) / ranks else "reduce_scatter"


def _load_tests(text: str, path: Path) -> Iterator[Cells]:
    for document in _documents(text, path):
        if isinstance(document.get("benchmarks"), list):
            for benchmark in document["benchmarks"]:
                yield from _guidellm(benchmark)
        elif {"total_input_tokens", "completed", "output_throughput"} <= document.keys():
            if not document["completed"]:
                raise InputError("no request of the load test was answered", file=str(path))
            yield _bench_serving(document)


def _documents(text: str, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON document, of lines of JSON, or of summaries that are printed. Raises InputError."""
    if text.lstrip()[:1] not in ("{", "["):
        yield from printed_tests(text)
        return
    try:
        parsed = json.loads(text)
        yield from (document for document in (parsed if isinstance(parsed, list) else [parsed])
                    if isinstance(document, dict))
        return
    except ValueError:
        pass
    if TITLE in text:  # behind what the server or the test logs
        yield from printed_tests(text)
        return
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise InputError(f"not JSON: {error}", file=str(path), line=number) from None
        if isinstance(row, dict):
            yield row


def _bench_serving(document: Mapping[str, Any]) -> Cells:
    """Return a run of vLLM's or SGLang's benchmark. Where requests come at a rate, those at once follow from it."""
    done = _number(document, "completed") or 0.0
    isl, osl = ((_number(document, f"total_{kind}_tokens") or 0.0) / max(done, 1.0) for kind in ("input", "output"))
    ttft, tpot, rate = (_number(document, name) for name in ("mean_ttft_ms", "mean_tpot_ms", "request_rate"))
    most = _number(document, "max_concurrency")
    at_once = most or done
    if rate is not None and math.isfinite(rate) and ttft is not None and tpot is not None:
        # Little's law
        waiting = (_number(document, "request_throughput") or rate) * (ttft + tpot * max(0.0, osl - 1)) / 1e3
        at_once = min(at_once, max(1.0, waiting))
    said = document.get("server_info")
    server = said if isinstance(said, dict) else {}
    backend = str(document.get("backend", ""))
    engine = "sglang" if "sglang" in backend else "vllm" if backend.startswith(("vllm", "openai")) else ""
    named = {"model": document.get("model_id") or server.get("model_path"), "engine": engine,
             "engine_version": server.get("version"), "tp": server.get("tp_size"),
             "source": f"{engine} benchmark".strip(), "notes": f"num_prompts={done:.0f}"}
    return _cells(named, {"isl": isl, "osl": osl, "concurrency": at_once, "ttft_ms": ttft, "tpot_ms": tpot,
                          "output_tok_s_total": _number(document, "output_throughput")})


def _guidellm(document: object) -> Iterator[Cells]:
    """Yield one benchmark of GuideLLM, by the means of its successful requests."""
    metrics = document.get("metrics") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(metrics, dict):
        return

    def mean(name: str) -> float | None:
        held = metrics.get(name)
        good = held.get("successful") if isinstance(held, dict) else None
        return _number(good, "mean") if isinstance(good, dict) else None

    worker = document.get("worker")
    model = worker.get("backend_model") if isinstance(worker, dict) else None
    yield _cells({"model": model, "source": "GuideLLM"}, {
        "isl": mean("prompt_token_count"), "osl": mean("output_token_count"),
        "concurrency": mean("request_concurrency"), "ttft_ms": mean("time_to_first_token_ms"),
        "tpot_ms": mean("inter_token_latency_ms"),
        "output_tok_s_total": mean("output_tokens_per_second")})


def _cells(words: Mapping[str, object], figures: Mapping[str, float | None]) -> Cells:
    return {**{name: str(word) for name, word in words.items() if word},
            **{name: f"{figure:.6g}" for name, figure in figures.items() if figure}}


def _number(document: Mapping[str, Any], name: str) -> float | None:
    """Return a figure; a rate without limit is "inf" or Infinity."""
    try:
        return None if document.get(name) is None else float(document[name])
    except (TypeError, ValueError):
        return None
