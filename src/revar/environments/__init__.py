"""The edge to Gymnasium: environments opened, observations as states, models in and out."""

from revar.environments.bins import Bins
from revar.environments.models import to_gymnasium
from revar.environments.tables import from_gymnasium

__all__ = ["Bins", "from_gymnasium", "to_gymnasium"]
