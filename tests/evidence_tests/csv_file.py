"""Small evidence files to test with."""

import csv
import json
from functools import cache
from pathlib import Path

from planner.answer.schema import to_json
from planner.ask.validate import validate_file
from planner.catalog.load import Catalog
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence

DATA = Path(__file__).parents[1] / "evidence"
THROUGHPUT = {
    "id": "DGXC-1", "gpu": "h100-sxm", "gpus": "64", "gpus_per_node": "8", "model": "Llama3-70B", "layers": "80",
    "hidden": "8192", "ffn": "28672", "heads": "64", "kv_heads": "8", "vocab": "128256", "gated_mlp": "1",
    "seq_len": "8192", "global_batch_seqs": "128", "micro_batch": "1", "tp": "4", "pp": "4", "vpp": "5", "cp": "2",
    "dp": "2", "sharding": "distopt", "recompute": "none", "precision": "bf16", "framework": "NeMo",
    "tokens_per_s_per_gpu": "", "step_time_s": "14.66", "tflops_per_gpu": "", "mfu": "", "peak_mem_gib": "",
    "stated": "yes", "suspect": "", "notes": ""}
MEMORY = {
    "id": "titan-1", "source": "pytorch/torchtitan", "gpu": "h100-sxm", "gpus": "8", "model": "Llama 3.1 8B",
    "params_b": "8.03", "layers": "32", "hidden": "4096", "ffn": "14336", "heads": "32", "kv_heads": "8",
    "vocab": "128256", "gated_mlp": "yes", "tied_embeddings": "no", "seq_len": "8192", "micro_batch": "1",
    "grad_accum": "1", "tp": "1", "pp": "1", "cp": "1", "dp": "8", "sharding": "fsdp", "recompute": "full",
    "weights_dtype": "fp32", "gradients_dtype": "fp32", "master_dtype": "none", "moments_dtype": "fp32",
    "method": "pretrain", "fits": "yes", "peak_mem_gib": "", "mem_kind": "reserved", "stated": "yes", "suspect": "",
    "lora_rank": "", "optimizer": "AdamW", "offload_parameters": "", "notes": ""}


@cache
def catalog():
    return Catalog()


@cache
def compared(name):
    """Return a shipped file against the predictions; this takes seconds, and several tests look at the same."""
    return compare(read_evidence(DATA / f"{name}.csv"), catalog())


def write(path, *rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(name):
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def validated(path, known=None):
    """Return what `planner validate --json` prints of a file."""
    return json.loads(to_json(validate_file(path, known or catalog())))
