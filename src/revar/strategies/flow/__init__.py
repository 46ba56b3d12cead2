"""Flow: estimate what every visit is worth, and plan the remaining episodes accordingly.

`strategy` holds the two strategies. `plan` makes a plan, from `costs` (what a visit is worth) and
`transitions` (where it leads), for what is `ahead`; `safety` keeps limits on sums, by an
`assessment` of plans; `tuning` holds the constants.
"""

from revar.strategies.flow.strategy import Flow, FlowOracle
from revar.strategies.flow.tuning import Tuning

__all__ = ["Flow", "FlowOracle", "Tuning"]
