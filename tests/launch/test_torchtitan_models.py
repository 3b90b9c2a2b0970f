"""Dense models that torchtitan has no flavor of have their own positions and norms, not those of Llama 3.1."""

import pytest

from planner.catalog.details import Details, Scaling
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.launch.emitters.torchtitan import FLAVORS, _own_model

CATALOG = Catalog()


def lines(name: str, details: Details | None = None) -> str:
    model = CATALOG.model(name)
    if details is not None:
        model = model.model_copy(update={"details": details})
    return "\n".join(_own_model(model, "torchtitan"))


@pytest.mark.parametrize(("name", "base"), [("llama-2-7b", "theta=10000)"), ("llama-3-8b", "theta=500000)"),
                                            ("yi-34b", "theta=5e+06)")])
def test_positions_are_those_of_the_config(name, base):
    """rope_theta of their config.json; Llama 3 is as Llama 3.1 but for the scaling."""
    assert name not in FLAVORS
    assert base in lines(name)
    assert "scaling=" not in lines(name)


def test_what_the_config_does_not_say_is_a_variable_and_what_torchtitan_has_not_is_refused():
    assert 'theta=float(os.environ["ROTARY_BASE"])' in lines("llama-2-7b", Details())
    scaled = Details(rotary_base=5e5, norm_epsilon=1e-6, scaling=Scaling(kind="llama3", factor=32, original=8192))
    assert "scaling='llama', scaling_factor=32, original_max_position_embeddings=8192" in lines("llama-2-7b", scaled)
    assert lines("llama-2-7b", scaled).count("1e-06") == 2
    for other in (Details(rotary_share=0.5), Details(activation="gelu"), Details(around_one=True),
                  Details(scaling=Scaling(kind="yarn", factor=4, original=4096))):
        with pytest.raises(Unsupported, match="llama-2-7b in torchtitan"):
            lines("llama-2-7b", other)
