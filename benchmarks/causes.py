"""What is known of why single rows are far off; for the page, never an input of a prediction."""

_GRAPH = "graph_trainer, an experiment that keeps more than eager recompute; its eager sibling titan-057 is within 5%"
_TRIAL = "trial of April 2024: both recompute modes hold 25 GiB more than without TP; not found in the code's counts"
_EXPERTS = "a layer's experts are one tensor: buffers of FSDP2's streams are reserved apart, which is not counted"
_SHORT = "not packed: the data's samples are shorter than the cap, by how much is not stated"

_EARLY = "NeMo 25.05, a third of the speed of releases from 25.09 on this hardware; recompute and dispatch not stated"
_HALF = ("half the speed of the same layout in release 25.09 (MB-284): MXFP8 at one sequence a micro-batch, as if each "
         "expert took 0.2 ms more host time; four sequences (MB-190) are within 2%")
_SHORTER = "adapters on samples that are shorter than the cap, by how much is not stated; the header misprints PP"

CAUSES: dict[str, str] = {
    "DGXC-257": _EARLY, "DGXC-258": _EARLY, "DGXC-259": _EARLY, "MB-227": _HALF, "MB-258": _HALF,
    "DGXC-251": _SHORTER, "DGXC-252": _SHORTER, "DGXC-253": _SHORTER, "DGXC-254": _SHORTER, "DGXC-255": _SHORTER,
    "MB-221": "tokens cross eight nodes; as many B200 took as long, so not the adapters' rate",
    "MB-257": "release 25.11; from 26.02 the same layout takes 40% less",
    "MB-091": "the only recipe that overlaps dispatch over nodes (moe_a2a_overlap), and drops some activations",
    "DGXC-189": "16-bit products on GB200 reach more in this run than in others",
    "LLMQ-033": "speed printed, batch not: one micro-batch is taken for a step",
    "JZV100-010": "exchanges of 8 MB between two V100 ran at 6 GB/s of the 50 that join them",
    "titan-039": _TRIAL, "titan-040": _TRIAL, "titan-056": _GRAPH, "titan-058": _GRAPH, "titan-059": _GRAPH,
    "titan-080": "NVFP4 keeps activations in 4 bits, which no row with less says how",
    "axolotl-002": _EXPERTS, "axolotl-003": _EXPERTS, "axolotl-005": _EXPERTS,
    "axolotl-014": "doubtful: an 8-bit base and its checkpoints alone are 10.3 GiB, and 11 is printed",
    "axolotl-018": "doubtful: the same page has full tuning of this model in 53 GiB, of which the weights alone are 50",
    "torchtune-019": _SHORT,
    "swift-051": "eight samples padded to the longest, whose length is not stated; the full cap would be 9% high",
    "swift-042": "contradicts swift-043 (18.0 GiB with ZeRO-2, which shards 0.2 GiB of it)",
    "torchtune-002": "recompute and optimizer not stated", "torchtune-004": "recompute not stated, probably none",
    "torchtune-025": "recompute not stated", "torchtune-006": "offload with a fused optimizer, pinned staging",
}
