"""Encoders of images and sound as the physics reads them: layers of a model without a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.architecture import Block, Mlp, Model
from planner.catalog.attention import Attention
from planner.catalog.encoder import Encoder, Tower
from planner.catalog.pictures import counted, seen_by
from planner.physics.kinds import shape_of
from planner.physics.layers import Shape


@dataclass(frozen=True, slots=True)
class TowerWork:
    """What one tower has to do for a sample or a request."""

    tower: Tower
    encoder: Model
    """Of the encoder, a model that reads positions."""
    shape: Shape
    pictures: float
    positions: int
    """Of each picture."""
    tokens: float
    """Of all pictures together, in the language model."""
    memory: float = 0.0
    """Positions of all pictures together that its cross attention reads."""

    @property
    def flops(self) -> float:
        """FLOPs of the layers, forward, of all pictures."""
        each = sum(share * kind.forward_flops(self.positions, 1) for kind, share in self.shape.kinds)
        return self.pictures * self.positions * self.shape.layers * each


def parts_of(model: Model, images: float, size: tuple[int, int], frames: int, sound: float) -> tuple[TowerWork, ...]:
    """Return what images or clips of `size` (width, height in pixels) and seconds of sound are to a model.

    Raises InputError for a model that has no encoder for them, or none that is in the catalog.
    """
    asked = ((model.tower, "images", images), (model.ear, "sound", 1.0 if sound else 0.0))
    return tuple(_part(model, tower, what, many, size, frames, sound) for tower, what, many in asked if many)


def _part(model: Model, tower: Tower | None, what: str, many: float, size: tuple[int, int], frames: int,
          sound: float) -> TowerWork:
    seen = counted(seen_by(tower, model, what), model, size, frames, sound)
    assert tower is not None
    assert tower.encoder is not None
    layers = encoder_model(tower.encoder)
    return TowerWork(tower, layers, shape_of(layers), many * seen.count, seen.positions, many * seen.tokens,
                     many * seen.memory)


def encoder_model(encoder: Encoder) -> Model:
    """Return the layers of an encoder as a model that reads positions."""
    def block(count: int, window: int | None) -> Block:
        heads = Attention(heads=encoder.heads, kv_heads=encoder.heads, head_dim=encoder.hidden // encoder.heads,
                          bias=encoder.bias, bidirectional=True, window=window)
        mlp = Mlp(kind="gated" if encoder.gated else "plain", ffn=encoder.ffn, bias=encoder.ffn_bias)
        return Block(count=count, attention=heads, mlp=mlp, vectors=encoder.vectors)

    whole = encoder.layers - encoder.windowed
    blocks = [block(whole, None)] if whole else []
    blocks += [block(encoder.windowed, encoder.window)] if encoder.windowed else []
    return Model(name="encoder", source="an encoder of a model of the catalog", as_of="2026", kind="assumed",
                 hidden=encoder.hidden, vocab=1, tied=True, norm=encoder.norm, blocks=tuple(blocks), sequence_length=1,
                 global_batch=1)
