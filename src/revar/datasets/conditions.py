"""Under which conditions episodes were collected: what resuming needs to know."""

import msgspec


class Conditions(msgspec.Struct, frozen=True):
    """Stored beside the episodes of an evaluation."""

    environment: str
    strategy: str
    horizon: int
    discount: float
    seed: int
    episodes: int  # the budget
    environments: int = 1  # played side by side
    workers: int | None = None  # that played elsewhere; None where this process played
    batch: int | None = None  # episodes that a worker was given at once, at most
    prior_episodes: int = 0
    options: str | None = None  # the environment was opened with
    bins: str | None = None
    policy: str | None = None  # a digest of the target policy over the states of the episodes
    # How many of the stored episodes were complete when the generators below were in that state.
    resumable: int = 0
    generators: tuple[str, ...] | None = None  # of the environments, as JSON; None if not known
