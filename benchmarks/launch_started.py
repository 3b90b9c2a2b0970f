"""Launch files really started on this machine's CPU, scaled down: a step of training, an answer, and the way back.

    PATH=ENV/bin:$PATH python -m benchmarks.launch_started

ENV is what `python -m benchmarks.launch` builds; `llama-server` is on PATH for llama.cpp. The files are those of the
plan; variables are set to a model of two layers and three steps, and the Trainer is told that there is no GPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import Request, urlopen

from benchmarks.launch_on_cpu import stands_in
from planner.ask.estimate import estimating
from planner.ask.validate import validate_file
from planner.catalog.load import Catalog
from planner.launch.folder import launched
from planner.launch.given import estimated

TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128, "intermediate_size": 128,
        "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2}
PATIENCE = 1200
STEPS = "3"
_GGUF = """
import sys
import numpy as np
from gguf import GGUFWriter, TokenType
w = GGUFWriter(sys.argv[1], "llama")
hidden, ffn, vocab, layers, heads = 64, 128, 261, 2, 4
w.add_context_length(4096); w.add_embedding_length(hidden); w.add_block_count(layers); w.add_feed_forward_length(ffn)
w.add_head_count(heads); w.add_head_count_kv(heads); w.add_layer_norm_rms_eps(1e-5); w.add_rope_dimension_count(16)
w.add_vocab_size(vocab)
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{at:02X}>" for at in range(256)] + ["a", "b"]
kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256 + [TokenType.NORMAL] * 2
w.add_tokenizer_model("llama"); w.add_token_list(tokens); w.add_token_scores([0.0] * vocab); w.add_token_types(kinds)
w.add_bos_token_id(1); w.add_eos_token_id(2); w.add_unk_token_id(0)
draw = np.random.default_rng(0)
def put(name, *shape):
    w.add_tensor(name, draw.normal(0, 0.02, shape).astype(np.float32))
put("token_embd.weight", vocab, hidden); put("output.weight", vocab, hidden); put("output_norm.weight", hidden)
for at in range(layers):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        put(f"blk.{at}.{name}.weight", hidden, hidden)
    put(f"blk.{at}.ffn_gate.weight", ffn, hidden); put(f"blk.{at}.ffn_up.weight", ffn, hidden)
    put(f"blk.{at}.ffn_down.weight", hidden, ffn)
    put(f"blk.{at}.attn_norm.weight", hidden); put(f"blk.{at}.ffn_norm.weight", hidden)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
"""
"""Writes a model of random weights, by the package gguf of the environment."""
_CLUSTER = """
import json, os, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 8, "include_dashboard": False})
cluster.add_node(num_cpus=2, num_gpus=8)
job = json.dumps({"runtime_env": {"working_dir": sys.argv[1]}})
env = {**os.environ, "RAY_ADDRESS": cluster.address, "RAY_JOB_CONFIG_JSON_ENV_VAR": job}
subprocess.run([sys.executable, "ray_job.py"], cwd=sys.argv[1], env=env, check=True)
"""
"""Two nodes of Ray, on which the driver of a folder runs as `ray job submit` runs it."""


def _folder(place: Path, target: str, asked: dict[str, str], layout: str, node: str = "h100-sxm-1x",
            scheduler: str | None = None) -> Path:
    catalog, folder = Catalog(), place / target
    words = {f"workload.{key}": value for key, value in asked.items()}
    found = estimating(None, words, catalog, node=node, labels={},
                       layout=dict(part.split("=") for part in layout.split(","))).answer().assignment
    folder.mkdir()
    for name, text in launched(estimated(found), catalog, target, scheduler).files.items():
        with (folder / name).open("w") as file:
            file.write(text)
    return folder


def _trained(folder: Path, **more: str) -> str:
    """Run train.sh, and return what `planner validate` makes of the state that it left."""
    model = folder.parent / "tiny"
    model.mkdir(exist_ok=True)
    with (model / "config.json").open("w") as file:
        json.dump(TINY, file)
    ran = subprocess.run(["bash", "train.sh"], cwd=folder, text=True, capture_output=True, timeout=PATIENCE,
                         check=False, env={**os.environ, "MODEL": str(model), "DATA": "mock", "STEPS": STEPS,
                                           "CUDA_VISIBLE_DEVICES": "", **more})
    if ran.returncode:
        raise SystemExit(f"{folder.name}: {ran.stderr[-3500:]}")
    state = next(folder.rglob("trainer_state.json"))
    with state.open() as file:
        losses = [entry["loss"] for entry in json.load(file)["log_history"] if "loss" in entry]
    log = folder / "train.log"
    with log.open("w") as file:
        file.write(ran.stdout + ran.stderr)
    rows = validate_file(log, Catalog(), {}).rows
    return f"{len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}; {len(rows)} rows come back"


def accelerate(place: Path) -> str:
    """Start Hugging Face's Trainer by `accelerate launch`."""
    folder = _folder(place, "accelerate", {"model": "llama-3.1-8b", "sequence_length": "64", "global_batch": "2",
                                           "stack": "accelerate-fsdp"}, "dp=1,recompute=full")
    with (folder / "train.yaml").open("a") as file:
        file.write("use_cpu: true\n")
    return _trained(folder, ACCELERATE_USE_CPU="true")


def llama_cpp(place: Path) -> str:
    """Start llama-server, and ask it for an answer."""
    if shutil.which("llama-server") is None:
        return "not started: llama-server is not on PATH"
    folder = _folder(place, "llama-cpp", {"kind": "serving", "model": "llama-3.1-8b", "engine": "llama-cpp",
                                          "input": "100", "output": "20"}, "tp=1")
    model = place / "tiny.gguf"
    subprocess.run([str(shutil.which("python3")), "-c", _GGUF, str(model)], check=True, timeout=PATIENCE)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["bash", "serve.sh"], cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=(place / "llama.log").open("w"),
                              env={**os.environ, "MODEL": str(model), "PORT": str(port)})
    try:
        ask = Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(
            {"model": "llama-3.1-8b", "prompt": "ab", "max_tokens": 5}).encode(), {"Content-Type": "application/json"})
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and server.poll() is None:
            try:
                with urlopen(ask, timeout=PATIENCE) as answer:
                    used = json.load(answer)["usage"]
                return f"answered a prompt of {used['prompt_tokens']} tokens with {used['completion_tokens']}"
            except URLError:
                time.sleep(0.5)
        said = (place / "llama.log").read_text()[-2000:]
        raise SystemExit(f"llama-server did not answer: exit {server.poll()}: {said}")
    finally:
        server.terminate()
        server.wait(PATIENCE)


def torchtitan(place: Path) -> str:
    """Start torchtitan's trainer with FSDP over two processes and gloo, on its smallest model."""
    folder = _folder(place, "torchtitan", {"model": "llama-3.1-8b", "sequence_length": "128", "global_batch": "4",
                                           "stack": "fsdp2-eager"}, "dp=2,zero=3", "h100-sxm-2x")
    config = folder / "plan_config.py"
    text = config.read_text().replace('"8B"', '"debugmodel"')
    with config.open("w") as file:
        file.write(text)
    ran = subprocess.run(["bash", "train.sh"], cwd=folder, text=True, capture_output=True, timeout=PATIENCE,
                         check=False, env={**os.environ, "STEPS": STEPS, "PYTHONPATH": str(stands_in(folder)),
                                           "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1"})
    if ran.returncode:
        raise SystemExit(f"torchtitan: {ran.stderr[-3500:]}")
    losses = re.findall(r"step:\s+(\d+).*?loss:\s+([\d.]+)", ran.stderr + ran.stdout)
    log = folder / "train.log"
    with log.open("w") as file:
        # a CPU has no peak of its own
        file.write((ran.stdout + ran.stderr).replace("-0.00GiB", "1.00GiB"))
    rows = validate_file(log, Catalog(), {}).rows
    return f"{losses[-1][0]} steps on 2 processes, loss {losses[0][1]} to {losses[-1][1]}; {len(rows)} rows come back"


def ray(place: Path) -> str:
    """Start a job of two nodes on a cluster of Ray with two on this machine, whose GPUs are made up."""
    folder = _folder(place, "megatron-lm", {"model": "llama-3.1-8b", "global_batch": "32", "stack": "megatron-core"},
                     "tp=2,dp=8", "dgx-h100", "ray")
    said_by = 'echo "$NODE_RANK of $NNODES: $CUDA_VISIBLE_DEVICES" >> "$SAID"'
    for name, line in (("install.sh", ""), ("train.sh", said_by)):
        with (folder / name).open("w") as file:
            file.write(line + "\n")
    said = folder / "said"
    ran = subprocess.run([str(shutil.which("python3")), "-c", _CLUSTER, str(folder)], text=True, capture_output=True,
                         timeout=PATIENCE, check=False, env={
                             **os.environ, "SAID": str(said), "RAY_raylet_start_wait_time_s": f"{PATIENCE}"})
    if ran.returncode:
        raise SystemExit(f"ray: {ran.stderr[-3500:]}")
    return "; ".join(sorted(said.read_text().splitlines()))


STARTED: dict[str, Callable[[Path], str]] = {
    "accelerate": accelerate, "torchtitan": torchtitan, "llama-cpp": llama_cpp, "ray": ray}


def main(names: list[str]) -> None:
    """Start the files of each target, and print what came of it."""
    with TemporaryDirectory() as place:
        for name in names:
            print(f"| `{name}` | {STARTED[name](Path(place))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [*STARTED])
