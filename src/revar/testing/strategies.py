"""All contracts of strategies."""

from collections.abc import Callable

from revar.strategies.strategy import Strategy
from revar.testing.parameters import PARAMETER_CHECKS
from revar.testing.plans import PLAN_CHECKS
from revar.testing.simulations import SIMULATION_CHECKS

STRATEGY_CHECKS: tuple[Callable[[Callable[[], Strategy]], None], ...] = (
    *PARAMETER_CHECKS,
    *PLAN_CHECKS,
    *SIMULATION_CHECKS,
)


def check_strategy(factory: Callable[[], Strategy]) -> None:
    """Every contract of strategies."""
    for check in STRATEGY_CHECKS:
        check(factory)
