"""Dense models that torchtitan has no flavor of have their own positions and norms, not those of Llama 3.1."""

import pytest

from planner.catalog.buildable import unbuilt
from planner.catalog.details import Details, Scaling
from planner.catalog.load import Catalog
from planner.launch.emitters.torchtitan import _own_model

CATALOG = Catalog()


def of(name: str, details: Details | None):
    model = CATALOG.model(name)
    return model if details is None else model.model_copy(update={"details": details})


def lines(name: str, details: Details | None = None) -> str:
    return "\n".join(_own_model(of(name, details)))


@pytest.mark.parametrize(("name", "base"), [("llama-2-7b", "theta=10000)"), ("llama-3-8b", "theta=500000)"),
                                            ("yi-34b", "theta=5e+06)")])
def test_positions_are_those_of_the_config(name, base):
    """rope_theta of their config.json; Llama 3 is as Llama 3.1 but for the scaling."""
    assert name not in CATALOG.releases.target("torchtitan").models
    assert unbuilt(CATALOG.releases, "torchtitan", CATALOG.model(name)) is None
    assert base in lines(name)
    assert "scaling=" not in lines(name)


def test_what_the_config_does_not_say_is_a_variable_and_what_torchtitan_has_not_is_refused():
    assert 'theta=float(os.environ["ROTARY_BASE"])' in lines("llama-2-7b", Details())
    scaled = Details(rotary_base=5e5, norm_epsilon=1e-6, scaling=Scaling(kind="llama3", factor=32, original=8192))
    assert "scaling='llama', scaling_factor=32, original_max_position_embeddings=8192" in lines("llama-2-7b", scaled)
    assert lines("llama-2-7b", scaled).count("1e-06") == 2
    for other in (Details(rotary_share=0.5), Details(activation="gelu"), Details(around_one=True),
                  Details(scaling=Scaling(kind="yarn", factor=4, original=4096))):
        assert "llama-2-7b in torchtitan" in str(unbuilt(CATALOG.releases, "torchtitan", of("llama-2-7b", other)))
