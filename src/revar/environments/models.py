"""to_gymnasium: a model played as an environment."""

from typing import Any

from revar.errors import InputError, require_extra
from revar.model.mdp import TabularMDP


def to_gymnasium(mdp: Any) -> Any:
    """The model as a Gymnasium environment.

    Observations are the states' numbers; the observation after the end is the last state again.
    Episodes are truncated at the horizon.
    """
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is a {type(mdp).__name__}; it must be a TabularMDP")
    require_extra("gymnasium", "gym")
    from revar.environments.simulated import ModelEnvironment  # noqa: PLC0415 - needs gymnasium

    return ModelEnvironment(mdp)
