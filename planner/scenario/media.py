"""Images, clips and sound of a sample or a request: how many tokens they are to a model, and what is said of them."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple, TypeVar

from planner.catalog.architecture import Model
from planner.catalog.encoder import Heard
from planner.catalog.load import Catalog
from planner.catalog.pictures import Pictures, counted, seen_by
from planner.catalog.recipes import Recipes
from planner.catalog.sized import size_of
from planner.errors import InputError
from planner.scenario.dataset import in_tokens
from planner.scenario.default import Default, Defaults
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.model_notes import beyond, failed_runs, text_part
from planner.scenario.pixels import Resolution
from planner.scenario.pool import named
from planner.scenario.posttraining import PostTraining
from planner.scenario.serving import Serving
from planner.scenario.usual import usual, usual_requests
from planner.scenario.workload import Training
from planner.yaml_io import Document

USUAL_SIZE = Resolution((1024, 1024))
"""Of an image where a question leaves it open."""
FROZEN = "encoder and projector are frozen unless named, as ms-swift, LLaMA-Factory and Qwen's scripts have it"
At = tuple[str | int, ...]
W = TypeVar("W", Training, Serving)
SEEN = ("image tokens", "sound tokens", "input", "output")
"""What the defaults are called that say how many tokens images, sound, prompts and answers are."""


class Media(NamedTuple):
    """What a sample or a request has beside text."""

    images: float
    """Or clips, if of several frames."""
    size: Resolution
    frames: int
    sound: float
    """Seconds of one piece of sound; zero is none."""

    def tokens(self, model: Model) -> float:
        """Return the tokens that all of it is to a model. Raises InputError for one that cannot see or hear it."""
        return sum(many * seen.tokens for many, seen in self._pictures(model))

    def memory(self, model: Model) -> float:
        """Return the positions of all of it that cross attention reads. Raises InputError like `tokens`."""
        return sum(many * seen.memory for many, seen in self._pictures(model))

    def _pictures(self, model: Model) -> list[tuple[float, Pictures]]:
        return [(many, counted(seen_by(tower, model, what), model, self.size, self.frames, self.sound))
                for tower, what, many in ((model.tower, "images", self.images),
                                          (model.ear, "sound", float(self.sound > 0))) if many]

    def __str__(self) -> str:
        """Say what it is."""
        kind = ("image" if self.frames == 1 else "clip") + ("" if self.images == 1 else "s")
        parts = [f"{self.images:g} {kind} of {self.size}" + (f" and {self.frames} frames" if self.frames > 1 else "")]
        parts = (parts if self.images else []) + ([f"{self.sound:g} s of sound"] if self.sound else [])
        return " and ".join(parts)


def with_usual(work: W, model: Model, recipes: Recipes) -> tuple[W, Defaults]:
    """Return a job or service with what it leaves open because of images and sound, and what decided: the sound of a
    model that writes what it hears, and of training a length that has room for all of it.
    """
    if model.attends_to == "sound":
        return _with_sound(work, model, recipes)
    if not isinstance(work, Training) or work.sequence_length is not None or work.dataset is not None or (
            media := media_of(work)) is None:
        return work, []
    with suppress(InputError):  # which is said of the key that it is about
        tokens, length = media.tokens(model), usual(model, work.method or "pretrain", recipes).sequence_length
        if tokens > length:
            while length < tokens:
                length *= 2
            # it is no longest sample, to which others would be padded
            packed = work.samples is not None and work.packing is None and not model.crosses
            chosen = {"sequence_length": length, **({"packing": True} if packed else {})}
            return work.model_copy(update=chosen), [Default(
                name="sequence_length", value=f"{length:,}",
                why=f"the shortest usual one with room for the {tokens:,.0f} tokens of a sample's {media}")]
    return work, []


def _with_sound(work: W, model: Model, recipes: Recipes) -> tuple[W, Defaults]:
    chosen: dict[str, object] = {}
    said: Defaults = []
    if (audio := work.audio) is None:
        reads = seen_by(model.ear, model, "sound")
        audio = float(reads.longest or 1) if isinstance(reads, Heard) else 1.0
        chosen["audio"] = audio
        said.append(Default(name="audio", value=f"{audio:g} s",
                            why=f"{model.name} writes what it hears, and reads so much at once"))
    if isinstance(work, Training) and work.sequence_length is None and work.dataset is None:
        chosen["sequence_length"] = length = recipes.speech.tokens(audio)
        chosen["mean_length"] = work.mean_length or length
        said.append(Default(name="sequence_length", value=f"{length:,}",
                            why=f"{audio:g} s of {recipes.speech.example} with what is asked ahead of it"))
    return work.model_copy(update=chosen), said


def media_of(work: Training | Serving) -> Media | None:
    """Return what is seen and heard; none where there is text alone."""
    images = work.images if isinstance(work, Training) else work.images_per_request
    if not images and not work.audio:
        return None
    return Media(images or 0.0, work.resolution or USUAL_SIZE, work.frames or 1, work.audio or 0.0)


def in_tokens_seen(work: Training, catalog: Catalog, document: Document, at: At = ("workload",)
                   ) -> tuple[Training, Defaults]:
    """Return a job that says its tokens, those of images and sound among them. Raises InputError."""
    heard, usually = list[Default](), None
    if (known := catalog.known_model(work.model)) is not None:
        work, heard = with_usual(work, known, catalog.recipes)
        usually = usual(known, work.method or "pretrain", catalog.recipes).sequence_length
        if known.crosses and work.packing is None and work.sees:
            # the images of one sample are not seen by another that shares a sequence: no trainer packs them
            work = work.model_copy(update={"packing": False})
        if known.is_silent and work.packing is None and (work.samples is not None or work.dataset is not None):
            work = work.model_copy(update={"packing": False})
            heard = [*heard, Default(name="packing", value="padded to the longest of a micro-batch",
                                     why=f"what {known.name} answers is of one sample")]
    if (media := media_of(work)) is None:
        work, said = in_tokens(work, catalog.recipes, document, at, usual_length=usually)
        return work, [*heard, *said]
    with named(document, *at, "model"):
        model = catalog.model(work.model)
    beside = _tokens(media, work, model, document, at)
    work, said = in_tokens(work, catalog.recipes, document, at, beside=beside, usual_length=usually)
    return work, [*heard, *said]


def _tokens(media: Media, work: Training | Serving, model: Model, document: Document, at: At) -> float:
    """Return the tokens of what is seen and heard. Raises InputError, naming the key that the model cannot heed."""
    try:
        return media.tokens(model)
    except InputError as error:
        eyes = "images" if isinstance(work, Training) else "images_per_request"
        key = "audio" if media.sound and (not media.images or "sound" in str(error)) else eyes
        raise document.error((*at, key), str(error)) from None


def media_notes(work: Training | Serving, model: Model, document: Document, at: At,
                length: int | None = None) -> Defaults:
    """Return what to say of images and sound: their tokens, their size, and what of the model trains; none of text.

    Raises InputError for what the model does not see or hear, or sequences of `length` tokens have no room for.
    """
    if (media := media_of(work)) is None:
        return []
    tokens = _tokens(media, work, model, document, at)
    if length is not None and tokens > length:
        raise document.error((*at, "sequence_length"), f"sequence_length {length:,} has no room for the {tokens:,.0f} "
                             f"tokens of a sample's {media}: give a longer one, a smaller resolution, or fewer of them")
    each = "sample" if isinstance(work, Training) else "request"
    read = media.memory(model)
    beside = f"; cross attention reads {read:,.0f} positions of them" if read else ""
    defaults = [Default(name=SEEN[0] if media.images else SEEN[1], value=f"{tokens:.0f}",
                        why=f"of a {each} with {media}, as the processor of {model.name} counts them{beside}")]
    if media.images and work.resolution is None:
        defaults.append(Default(name="resolution", value=str(media.size), why="no size of images is given"))
    if isinstance(work, Training) and not work.trained_parts and work.method != "inference":
        defaults.append(Default(name="trained_parts", value="language", why=FROZEN))
    return defaults


def estimate_notes(work: object, catalog: Catalog, document: Document) -> Defaults:
    """Return what an estimate says of images and sound, of a model that is planned for its text, and of the lengths
    of requests that are not said. Raises InputError.
    """
    if isinstance(work, DiffusionTraining):
        return failed_runs(catalog.diffusion(work.model).name, catalog)
    if not isinstance(work, Training | Serving | PostTraining) or (
            catalog.known_model(work.model) is None and size_of(work.model) is None):
        return []
    model = catalog.model(work.model)
    if isinstance(work, PostTraining):
        return text_part([model])
    if isinstance(work, Serving):
        work, heard = with_usual(work, model, catalog.recipes)
        unsaid = dict.fromkeys({"input", "output"} - set(document.data.get("workload", {})))
        return [*heard, *said_of(work, model, document),
                *usual_requests(work.model_copy(update=unsaid), model, catalog.recipes)[1]]
    work, heard = with_usual(work, model, catalog.recipes)
    usually = work.sequence_length or usual(model, work.method or "pretrain", catalog.recipes).sequence_length
    return [*heard, *said_of(work, model, document, length=usually)]


def context_of(work: object, catalog: Catalog) -> int | None:
    """Return the tokens that the model of text of a piece of work is published to take, where that is known."""
    model = catalog.known_model(work.model) if isinstance(work, Training | Serving) else None
    return None if model is None else model.context


def said_of(work: Training | Serving, model: Model, document: Document, at: tuple[str | int, ...] = ("workload",),
            length: int | None = None) -> Defaults:
    """Return what is said of images and sound, or that a model is planned for its text, and of sequences that are
    longer than it is published to take. `length` is that of a training sequence. Raises InputError.
    """
    longest = length if isinstance(work, Training) else work.max_model_len or work.mean_request
    return (media_notes(work, model, document, at, length) or text_part([model])) + beyond([model], longest)
