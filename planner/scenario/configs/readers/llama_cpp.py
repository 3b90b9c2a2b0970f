"""A line that starts llama.cpp's server: `llama-server -hf ORG/MODEL:Q4_K_M`, or `-m FILE.gguf`."""

from __future__ import annotations

import re

from planner.scenario.configs import serving
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

PROGRAMS = ("llama-server", "llama-cli", "llama-bench", "llama.cpp")
_KIND = re.compile(r"(?:^|[-.:_])((?:iq|q)\d(?:_(?:[01]|k(?:_(?:s|m|l))?|xs|nl))?)(?=$|[.:-])", re.IGNORECASE)


def tells(source: Source) -> bool:
    """Say whether it is one, by the program."""
    return source.form == "command" and any(
        word.rpartition("/")[2].startswith(PROGRAMS) for word in source.every_word())


def read(reading: Reading) -> None:
    """Read model, kind of weights, context and slots."""
    reading.put("workload.engine", "llama-cpp", "the program")
    named = reading.text("hf", "hf-repo", "hfr", "m", "model") or ""
    file = reading.text("hf-file", "hff") or ""
    kind = _KIND.search(f"{named.rpartition('/')[2]}:{file}")
    model = re.sub(r"(?i)[-_.]gguf(?=$|:)", "", named).partition(":")[0].removesuffix(".gguf")
    if kind is not None:
        at = model.lower().rfind(kind.group(1).lower())
        model = model if at < 1 else model[:at - 1] + model[at + len(kind.group(1)):]
        reading.put("workload.quantization", kind.group(1).lower(), "the file")
    serving.model(reading, model.rpartition("/")[2] if named.endswith(".gguf") else model, "model")
    serving.lengths(reading, reading.number("c", "ctx-size"), "ctx-size")
    if (slots := reading.number("np", "parallel")) is not None:
        reading.put("workload.max_sequences", slots, "parallel")
        if longest := reading.values.get("workload.max_model_len"):
            each = int(str(longest)) // slots
            serving.lengths(reading, each, "ctx-size")
            reading.counted.append(f"ctx-size {longest}: {each:,} tokens for each of {slots} slots")
    offloaded = reading.text("ngl", "n-gpu-layers", "gpu-layers")
    if offloaded is not None and offloaded.isdecimal() and int(offloaded) < LAYERS:
        reading.counted.append(f"n-gpu-layers {offloaded}: with all layers on the GPU")


LAYERS = 80
"""Of -ngl: so many are all, as is 99 or 999, by which people mean that."""
READER = Reader("a line of llama.cpp", tells, read)
