"""Decoders that attend to what an encoder has read, from Hugging Face configs: Whisper, and Llama 3.2 Vision."""

from __future__ import annotations

from planner.catalog.importers.hf_parts import Config, Entry, attention, gated, several, usual

FRAMES = 50
"""Positions of a second in Whisper's encoder: a frame each 10 ms, and a convolution that takes two."""
KERNEL = 3
"""Of both of its convolutions."""


def whisper(c: Config) -> Entry:
    """Whisper, whose every decoder layer has both attentions; keys have no bias, so that three of four products do."""
    c, wide = usual(c), c["d_model"]
    heads = attention({**c, "hidden_size": wide, "num_attention_heads": c["decoder_attention_heads"]}, bias="qkv")
    positions = c.get("max_source_positions", 1500)
    ear = {"layers": c["encoder_layers"], "hidden": wide, "heads": c["encoder_attention_heads"],
           "ffn": c["encoder_ffn_dim"], "bias": "qkv", "projector": 2 * wide,
           "embedding": KERNEL * wide * (c.get("num_mel_bins", 80) + wide) + (2 + positions) * wide,
           "reads": {"kind": "heard", "frames": FRAMES, "pooled": 1, "longest": positions // FRAMES}}
    return {"hidden": wide, "tied": bool(c.get("tie_word_embeddings", True)), "norm": "layernorm",
            "positions": "learned", "position_rows": c.get("max_target_positions", 448), "ear": {"encoder": ear},
            "blocks": [{"count": c["decoder_layers"], "attention": heads, "cross": heads,
                        "mlp": {"kind": "plain", "ffn": c["decoder_ffn_dim"], "bias": True}}]}


def mllama(c: Config) -> Entry:
    """Llama 3.2 Vision: some layers have attention to images in place of that to tokens, both parts with a gate."""
    crossed = {int(place) for place in c["cross_attention_layers"]}
    plain = {"attention": attention(c), "mlp": gated(c)}
    seeing = {"cross": attention(c, qk_norm=True), "mlp": gated(c), "vectors": 2}
    # eight tokens of images have no row in the output matrix
    return several(c, [seeing if place in crossed else plain for place in range(c["num_hidden_layers"])]) | {
        "input_parameters": 8 * c["hidden_size"]}
