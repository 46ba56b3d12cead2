"""How episodes are collected, whatever is asked and whichever method answers."""

import inspect
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revar.datasets.files import load_collected
from revar.environments.observations import Bins, count_values, is_discrete
from revar.environments.opening import built_in_model, open_environment
from revar.errors import InputError, require_extra
from revar.evaluation.run import Progress
from revar.model.episodes import Episodes
from revar.model.limits import Limits, check_limits
from revar.model.trajectory import Dataset
from revar.policies.interface import tells_no_probabilities
from revar.progress import progress_bar
from revar.strategies.strategy import StrategyLike

METHODS = ("table", "critic", "mean")
# Observations that a table has room for by default. A policy's value needs data of most states
# that it meets, and few budgets bring more visits than these; critics learn across states.
MOST_STATES = 100_000


@dataclass(frozen=True, kw_only=True)
class CollectionSettings:
    """How episodes are collected: what `evaluate` and `compare` are told alike."""

    strategy: StrategyLike = "flow"
    cost: Any = None  # of steps, where the budget is of cost
    limits: Limits | None = None
    horizon: int | None = None
    discount: float | None = None
    seed: int | None = None
    progress: bool | Progress = False
    bins: Bins | None = None
    environments: int = 1
    env_options: dict[str, Any] | None = None
    workers: int | None = None
    engine: str = "processes"
    batch: int | None = None
    address: str | None = None
    prior: Dataset | Episodes | str | Path | None = None
    save: str | Path | None = None
    resume: str | Path | None = None
    # Of methods "critic" and "mean" alone:
    method: str | None = None
    features: Any = None
    resets: int | None = None
    critics: Any = None


def check_bins(bins: Any) -> None:
    """Refuse what is no Bins, and say how they are made."""
    if bins is not None and not isinstance(bins, Bins):
        raise InputError(
            f"bins is {bins!r}; give bins=revar.Bins(...) of edges, or equal ones between bounds: "
            f"revar.Bins.uniform(low, high, counts)"
        )


def path_to_write(save: str | Path | None, resume: str | Path | None) -> Path | None:
    """Checked before the first episode: what was collected must not be lost to a misspelling."""
    path = save if save is not None else resume
    if path is None:
        return None
    target = Path(path)
    if target.suffix not in (".npz", ".parquet"):
        raise InputError(f"{path}: datasets are saved as .npz or .parquet")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{path} is a folder; the episodes need a file")
    if target.suffix == ".parquet":
        require_extra("pyarrow.parquet", "parquet")
    if target.exists() and (resume is None or not target.samefile(resume)):
        raise InputError(f"{path} exists; resume from it, or name another file")
    return target


def show_progress(progress: bool | Progress, label: str, unit: str) -> AbstractContextManager[Any]:
    """What is to be called with what is spent, the budget, and, if it takes that, what is done."""
    if progress is True:
        return progress_bar(label, unit)
    return nullcontext(progress if callable(progress) else None)


def with_words(report: Any) -> Any:
    """The same, called with what is being done; left out where it takes two numbers only."""
    if report is None:
        return None
    try:
        inspect.signature(report).bind(0, 0, "")
    except (TypeError, ValueError):
        return lambda done, total, _what: report(done, total)
    return report


def choose_method(
    env: Any, opened: Any, policies: Iterable[Any], settings: CollectionSettings
) -> str:
    """The method that is asked for, that of a resumed file, or what suits spaces and policies."""
    if settings.method is not None:
        if settings.method not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise InputError(f"method is {settings.method!r}; it must be one of {known}")
        if settings.method == "table":
            _refuse(settings, "table")
        return settings.method
    if settings.resume is not None:
        found, known_conditions = load_collected(settings.resume)
        if known_conditions is not None:
            return known_conditions.method
        return "critic" if isinstance(found, Episodes) else "table"
    if settings.bins is not None:
        method = "table"
    elif any(map(tells_no_probabilities, policies)):
        method = "critic"
    elif built_in_model(env, settings.env_options) is not None:
        method = "table"
    else:
        seen = getattr(opened, "single_observation_space", None) or opened.observation_space
        done = getattr(opened, "single_action_space", None) or opened.action_space
        large = (count_values(seen) or 0) > MOST_STATES and not _asks_for_table(settings)
        method = "table" if is_discrete(seen, done) and not large else "critic"
    if method == "table":
        _refuse(settings, "table")
    return method


def _asks_for_table(settings: CollectionSettings) -> bool:
    """Whether something is given that only a table can follow."""
    a_table = isinstance(settings.prior, str | Path | Dataset)  # or may be one
    other_strategy = settings.strategy != CollectionSettings.strategy
    return a_table or other_strategy or not check_limits(settings.limits).none


def find_method(env: Any, policy: Any, settings: CollectionSettings) -> str:
    """The same, for an environment that is opened for the question alone where that is needed."""
    known = settings.bins is not None or built_in_model(env, settings.env_options) is not None
    if settings.method is not None or known:
        return choose_method(env, None, [policy], settings)
    opened = open_environment(env, settings.env_options)
    try:
        return choose_method(env, opened, [policy], settings)
    finally:
        if opened is not env:
            opened.close()


def _refuse(settings: CollectionSettings, method: str) -> None:
    for name in ("features", "resets", "critics"):
        if getattr(settings, name) is not None:
            raise InputError(f"{name} is for method 'critic'; the method is {method!r} here")
