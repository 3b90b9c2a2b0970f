"""A line that starts SGLang (docs.sglang.ai server arguments): `python -m sglang.launch_server --model-path ...`."""

from __future__ import annotations

from planner.scenario.configs import serving
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

DELAY = 30
"""--prefill-delayer-max-delay-passes, where it is not given."""


def tells(source: Source) -> bool:
    """Say whether it is one, by the program or the container that is started."""
    # the value of a dotted key is of another program's
    words = [*source.words, *(str(word) for key, value in source.keys.items() if "." not in key
                              for word in (value if isinstance(value, list) else [value]))]
    return source.form == "command" and not source.has("rollout-batch-size") and any(
        word.startswith(("sglang", "lmsysorg/sglang", "dynamo.sglang")) for word in words)


def read(reading: Reading) -> None:
    """Read model, format, cache, longest request and degrees."""
    reading.put("workload.engine", "sglang", "the program")
    reading.get("m")
    serving.model(reading, reading.text("model-path", "model"), "model-path")
    serving.lengths(reading, reading.number("context-length"), "context-length")
    tp = serving.degree(reading, "tp", "tp-size", "tp", "tensor-parallel-size")
    pp = serving.degree(reading, "pp", "pp-size", "pipeline-parallel-size")
    attention = reading.number("attn-dp-size") or 1
    copies = reading.number("dp-size", "dp", "data-parallel-size") or 1
    if reading.on("enable-dp-attention"):
        attention, copies = copies, 1
    # both are of all copies of attention, among which the server divides them
    serving.limits(reading, "mem-fraction-static", "max-running-requests", "chunked-prefill-size", copies=attention)
    if reading.on("enable-prefill-delayer"):
        passes = reading.number("prefill-delayer-max-delay-passes")
        reading.put("workload.prefill_delay", DELAY if passes is None else passes, "enable-prefill-delayer")
    drafts = next((key for key in ("speculative-algorithm", "speculative-algo") if reading.get(key)), "")
    serving.unsaid(reading, drafts, "")
    spread = reading.on("enable-ep-moe", "enable-deepep-moe") or reading.word("moe-a2a-backend") not in (None, "none")
    experts = reading.number("ep-size", "ep", "expert-parallel-size") or (tp if spread else 1)
    if attention > 1 and "tp" not in reading.open:
        if tp % attention:
            raise reading.wrong(("attn-dp-size", "dp-size", "dp"), attention, f"a divisor of the {tp} GPUs of TP")
        # copies of attention share the GPUs of the experts
        reading.axis("tp", tp // attention, "enable-dp-attention")
        reading.axis("dp", attention, "enable-dp-attention")
        reading.axis("ep", experts, "ep-size")
    elif experts > 1:
        reading.counted.append(f"ep-size {experts}: experts are split as all matrices are, by TP")
    reading.gpus = tp * pp * copies


READER = Reader("an SGLang command", tells, read)
