"""Makes images, clips or sound with diffusers as settings.json beside this file says.

    generate.py OUTPUT         a batch: samples $COPY, $COPY + $COPIES, .. of $SAMPLES, with the prompts of $PROMPTS
    generate.py --port 8001    answers POST /generate {"prompt": "..."} with one sample, as many in a call as wait

Of a batch, the seconds and the peak of memory come to lie in OUTPUT/run-COPY.csv, which `planner validate` reads.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any

import diffusers
import torch
from diffusers.utils import export_to_video

HERE = Path(__file__).parent
SUFFIX = {"image": ".png", "video": ".mp4", "audio": ".wav"}


def formats(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what from_pretrained is told of the denoiser's format."""
    told = settings["quantization"]
    if told is None:
        return {}
    if told["by"] == "torchao":
        import torchao.quantization
        config = diffusers.TorchAoConfig(getattr(torchao.quantization, told["config"])())
    else:
        config = diffusers.BitsAndBytesConfig(**told["config"], bnb_4bit_compute_dtype=torch.bfloat16)
    parts = dict.fromkeys(settings["denoiser"], config)
    return {"quantization_config": diffusers.PipelineQuantizationConfig(quant_mapping=parts)}


def loaded(settings: dict[str, Any], model: str, device: str) -> Any:  # noqa: ANN401 - one of many classes
    """Return the pipeline, where and as the plan has it."""
    made = getattr(diffusers, settings["pipeline"]).from_pretrained(
        model, torch_dtype=getattr(torch, settings["dtype"]), **formats(settings))
    if settings["vae"] == "tiled":
        made.vae.enable_tiling()
    if settings["step_cache"] == "first-block-cache":
        for part in settings["denoiser"]:
            getattr(made, part).enable_cache(diffusers.FirstBlockCacheConfig(threshold=settings["cache_threshold"]))
    if settings["offload"] == "model":
        made.enable_model_cpu_offload(device=device)
    elif settings["offload"] == "sequential":
        made.enable_sequential_cpu_offload(device=device)
    else:
        made.to(device)
    if settings["compile"]:
        for part in settings["denoiser"]:
            denoiser = getattr(made, part)
            denoiser.compile_repeated_blocks() if denoiser._repeated_blocks else denoiser.compile()
    return made


def call(made: Any, settings: dict[str, Any], prompts: Sequence[str]) -> list[Any]:  # noqa: ANN401
    """Return the samples of one call."""
    negative = {"negative_prompt": [settings["negative"]] * len(prompts)} if settings["negative"] is not None else {}
    found = made(prompt=list(prompts), **settings["call"], **negative)
    return list(found.audios if settings["media"] == "audio" else found.frames if settings["media"] == "video"
                else found.images)


def save(sample: Any, settings: dict[str, Any], path: Path) -> None:  # noqa: ANN401
    """Write one sample to a file."""
    if settings["media"] == "image":
        sample.save(path)
    elif settings["media"] == "video":
        export_to_video(sample, str(path), fps=settings["frames_per_second"])
    else:
        from scipy.io import wavfile
        wavfile.write(path, settings["sample_rate"], sample.T.float().cpu().numpy())


def batch(made: Any, settings: dict[str, Any], output: Path, device: str) -> None:  # noqa: ANN401
    """Make this copy's share of a batch, and write down how long a call takes."""
    output.mkdir(parents=True, exist_ok=True)
    copy, copies = int(os.environ.get("COPY", "0")), int(os.environ.get("COPIES", "1"))
    prompts = Path(os.environ["PROMPTS"]).read_text().splitlines()
    mine = list(range(copy, int(os.environ["SAMPLES"]), copies))
    calls = [mine[at:at + settings["batch"]] for at in range(0, len(mine), settings["batch"])]
    seconds = []
    for numbers in calls:
        begun = time.perf_counter()
        samples = call(made, settings, [prompts[number % len(prompts)] for number in numbers])
        seconds.append((time.perf_counter() - begun) / len(numbers))
        for number, sample in zip(numbers, samples, strict=True):
            save(sample, settings, output / f"{number:06d}{SUFFIX[settings['media']]}")
        print(f"{len(numbers)} in {seconds[-1] * len(numbers):.2f} s", flush=True)
    if not seconds:
        return
    # the first call also warms up
    usual = sorted(seconds[1:] or seconds)[len(seconds[1:] or seconds) // 2]
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0.0
    row = {**settings["row"], "id": f"run-{copy}", "latency_s": round(usual * settings["batch"], 4),
           "peak_mem_gib": round(peak, 3) if peak else ""}
    with (output / f"run-{copy}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)


def serve(made: Any, settings: dict[str, Any], port: int) -> None:  # noqa: ANN401
    """Answer requests, up to a batch of those that wait in one call."""
    waiting: Queue[tuple[str, Event, list[Any]]] = Queue()

    def work() -> None:
        while True:
            taken = [waiting.get()]
            while len(taken) < settings["batch"]:
                try:
                    taken.append(waiting.get_nowait())
                except Empty:
                    break
            try:
                samples = call(made, settings, [prompt for prompt, _, _ in taken])
            except Exception as error:  # the others are still answered
                samples = [error] * len(taken)
            for (_, done, answer), sample in zip(taken, samples, strict=True):
                answer.append(sample)
                done.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            done = Event()
            answer: list[Any] = []
            waiting.put((asked["prompt"], done, answer))
            done.wait()
            failed = isinstance(answer[0], Exception)
            path = HERE / f"answer-{port}-{id(answer)}{SUFFIX[settings['media']]}"
            if not failed:
                save(answer[0], settings, path)
            self.send_response(500 if failed else 200)
            self.end_headers()
            self.wfile.write(str(answer[0]).encode() if failed else path.read_bytes())
            path.unlink(missing_ok=True)

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

    Thread(target=work, daemon=True).start()
    ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()


def main(words: Sequence[str]) -> None:
    """Load the pipeline and make what is asked."""
    settings = json.loads((HERE / "settings.json").read_text())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    made = loaded(settings, os.environ["MODEL"], device)
    if words[0] == "--port":
        serve(made, settings, int(words[1]))
    else:
        batch(made, settings, Path(words[0]), device)


if __name__ == "__main__":
    main(sys.argv[1:])
