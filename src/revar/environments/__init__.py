"""The edge to Gymnasium: environments opened, observations as states, models in and out."""

from revar.environments.observations import Bins
from revar.environments.opening import to_gymnasium
from revar.environments.tables import from_gymnasium

__all__ = ["Bins", "from_gymnasium", "to_gymnasium"]
