"""Sound that a diffusion model makes or is trained on: its length is asked for in seconds."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.answer.assignment import DiffusionAssignment
from planner.errors import InputError

SONG: dict[str, Any] = {"model": "ace-step-1.5", "on": "rtx-4090-1x"}


def test_longer_sound_takes_longer_and_is_said_in_seconds() -> None:
    short, long = (planner.plan(**SONG, method="lora", steps=100, audio=length).assignments[0]
                   for length in ("60 s", "4 min"))
    assert isinstance(short, DiffusionAssignment)
    assert isinstance(long, DiffusionAssignment)
    assert (short.resolution, long.resolution, short.noun) == ("60 s", "240 s", "clip")
    # 25 latents a second, two of them a token
    assert (short.sample_tokens, long.sample_tokens) == (750, 3000)
    assert long.time.step_seconds > short.time.step_seconds
    assert not long.time.evidence.validated  # type: ignore[union-attr]


def test_songs_are_made_at_a_rate() -> None:
    plan = planner.plan(**SONG, rate="2 songs/min", e2e="30 s", audio="120 s")
    made = plan.assignments[0].serving.made  # type: ignore[union-attr]
    assert made is not None
    assert (made.media, made.resolution, made.noun) == ("audio", "120 s", "clips")


def test_the_longest_that_fits_is_found() -> None:
    found = [planner.estimate("ace-step-1.5", gpu, method="lora", largest="audio") for gpu in ("rtx-3060", "rtx-4090")]
    sizes = [each.resolution for each in found if isinstance(each, DiffusionAssignment)]
    assert 0 < float(sizes[0].removesuffix(" s")) < float(sizes[1].removesuffix(" s"))


@pytest.mark.parametrize(("asked", "told"), [
    ({"resolution": 512}, "no resolution"), ({"frames": 16}, "no frames"),
    ({"model": "sdxl", "audio": "3 s"}, "makes images"), ({"model": "wan2.1-1.3b", "audio": "3 s"}, "makes clips")])
def test_keys_of_another_medium_are_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        planner.plan(**SONG | asked, method="lora", steps=10)
