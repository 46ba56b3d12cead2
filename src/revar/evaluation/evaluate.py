"""evaluate: what is a policy worth? compare: which of several policies is the best?"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from revar.environments.observations import Bins
from revar.environments.opening import EnvironmentLike
from revar.evaluation.aggregation import add_check
from revar.evaluation.collect import collect
from revar.evaluation.comparison import ComparisonResult
from revar.evaluation.goals import ComparisonGoal, ValueGoal
from revar.evaluation.result import EvaluationResult
from revar.evaluation.run import Progress
from revar.evaluation.settings import CollectionSettings
from revar.evaluation.target_policies import check_policies
from revar.model.budget import check_budget
from revar.model.episodes import Episodes
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.policies.interface import PolicyLike
from revar.strategies.strategy import StrategyLike


def evaluate(
    env: EnvironmentLike,
    policy: PolicyLike | None,
    *,
    strategy: StrategyLike = "flow",
    episodes: int | None = None,
    steps: int | None = None,
    budget: float | None = None,
    cost: Any = None,
    limits: Limits | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    seed: int | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    progress: bool | Progress = False,
    bins: Bins | None = None,
    environments: int = 1,
    env_options: dict[str, Any] | None = None,
    workers: int | None = None,
    engine: str = "processes",
    batch: int | None = None,
    address: str | None = None,
    prior: Dataset | Episodes | str | Path | None = None,
    save: str | Path | None = None,
    resume: str | Path | None = None,
    method: str | None = None,
    features: Callable[[Any], Any] | None = None,
    resets: int | None = None,
    critics: Any = None,
) -> EvaluationResult:
    """Collect episodes of `env` within a budget; the value of `policy`.

    Ctrl-C returns what there is, with `complete` False. An error raises EvaluationError, whose
    `result` holds it.

    Parameters
    ----------
    env
        A Gymnasium environment or its id, 'module:factory', a function that makes one, a vector
        environment, a built-in problem, or a TabularMDP.
    policy
        An array `[*observations, actions]`, a function from an observation to probabilities, a
        model with `predict`, "uniform", or by name a file (.npy, .npz, a model's .zip) or
        'module:function'; None stands for the policy of a built-in problem. An array
        `[*observations]` of actions, or a function that gives an action, takes it for certain.
        Other actions than Discrete: a GaussianPolicy, a DeterministicPolicy, what `policy_from_sb3`
        makes, or an object with `sample`.
    strategy
        How a table is collected: an id, or a strategy.
    episodes, steps
        What may be spent; one of these and `budget`. An episode is begun as long as anything is
        left.
    budget
        What may be spent of `cost`.
    cost
        What steps take from a `budget`: an array `[*observations, actions]`, a function of
        observation and action, or the name under which the environment's `info` reports it.
    limits
        What collection may not do, see `Limits`. Actions count from 0.
    horizon
        Steps after which an episode is cut; by default the environment's time limit.
    discount
        By default that of a built-in problem or a TabularMDP, and 1 for environments.
    seed
        Of the first reset and of the choice of actions; the same seed gives the same episodes.
    half_width
        Stop when the interval is that narrow.
    confidence
        Of the interval.
    progress
        True for a bar, or a function that is called with what is done and what there is to do.
    bins
        Make a table of continuous observations. They can bias the value: up to 200 more episodes,
        outside the budget, check whether they do.
    environments
        How many are played side by side.
    env_options
        For opening the environment.
    workers
        How many processes play at once, each with an environment of its own; 1, like None, is the
        serial run.
    engine
        "processes", "inline" (in this one), or "ray": of the cluster at `address`.
    batch
        The most episodes that a worker is given at a time: docs/scaling.md has the rule.
    address
        Of a Ray cluster; by default Ray is started on this machine.
    prior
        A dataset collected earlier, under any behavior; it spends no budget. Of whole episodes
        critics learn; those of a file of the same policy and environment enter the estimate, too,
        unless the environment is handed in: how it was made is not known.
    save, resume
        The file (.npz or .parquet) to write episodes to, and to go on from. It is written at every
        checkpoint, too, so that a run that is killed can be resumed from there.
    method
        "table" learns a model of discrete observations, and collects with `strategy`; "critic"
        plays the policy itself in any environment, and takes from its returns what learned critics
        explain; "mean" is the mean return. By default a table where observations and actions are
        discrete, with at most 100,000 values of observations, or `bins` are given, and critics
        elsewhere.
    features
        A function from an observation to the numbers that critics see; by default they see the
        observation.
    resets
        First observations that are drawn besides, and not played. By default 10 for every episode
        where the environment is opened by its id and resets are cheap, and otherwise none.
    critics
        A list of families to learn ("linear", "network"), of critics that are fixed (the file of
        `result.save_critic`, an object with a method `values`, a function from inputs to values)
        and of trained models whose value function is one.
    """
    result = collect(
        env,
        {"": policy},
        ValueGoal(confidence, half_width, check_budget(episodes, steps, budget, cost)),
        CollectionSettings(
            cost=cost,
            limits=limits,
            strategy=strategy,
            horizon=horizon,
            discount=discount,
            seed=seed,
            progress=progress,
            bins=bins,
            environments=environments,
            env_options=env_options,
            workers=workers,
            engine=engine,
            batch=batch,
            address=address,
            prior=prior,
            save=save,
            resume=resume,
            method=method,
            features=features,
            resets=resets,
            critics=critics,
        ),
    )
    found = cast(EvaluationResult, result)
    return found if bins is None else add_check(found, env, policy, bins, cost, env_options)


class Collecting(TypedDict, total=False):
    """What `compare` takes besides, as `evaluate` does."""

    strategy: StrategyLike
    limits: Limits | None
    horizon: int | None
    discount: float | None
    seed: int | None
    progress: bool | Progress
    bins: Bins | None
    environments: int
    env_options: dict[str, Any] | None
    workers: int | None
    engine: str
    batch: int | None
    address: str | None
    prior: Dataset | str | Path | None
    save: str | Path | None
    resume: str | Path | None
    method: str | None
    features: Callable[[Any], Any] | None
    resets: int | None
    critics: Any


def compare(
    env: EnvironmentLike,
    policies: Mapping[str, PolicyLike | None],
    *,
    episodes: int | None = None,
    steps: int | None = None,
    budget: float | None = None,
    cost: Any = None,
    question: str = "best",
    decide: float | None = None,
    indifference: float | None = None,
    confidence: float | None = None,
    **collecting: Unpack[Collecting],
) -> ComparisonResult:
    """Collect episodes of `env`, within a budget, that answer which of `policies` is the best.

    With methods "critic" and "mean" the policies play in turn, from the same resets, and are
    compared pair by pair. Ctrl-C and errors are as in `evaluate`.

    Parameters
    ----------
    env
        As in `evaluate`.
    policies
        A mapping from names to policies, each given as in `evaluate`.
    episodes, steps
        What may be spent, as in `evaluate`.
    budget
        What may be spent of `cost`.
    cost
        As in `evaluate`.
    question
        What the episodes are to answer: "best", "values" (all of them, equally well), or
        "difference" (of two policies).
    decide
        A confidence, such as 0.95: stop when the best is known with it. All looks at the data and
        all differences are allowed for.
    indifference
        A difference that does not matter: stop, too, when no other policy differs from the best by
        more.
    confidence
        Of the intervals; by default 0.95, or that of `decide`.
    **collecting
        As in `evaluate`: strategy, limits, horizon, discount, seed, progress, bins, environments,
        env_options, workers, engine, batch, address, prior, save, resume, method, features, resets,
        critics.
    """
    for name in collecting.keys() - Collecting.__annotations__.keys():
        raise TypeError(f"compare() got an unexpected keyword argument {name!r}")
    chosen = check_policies(policies)
    given = check_budget(episodes, steps, budget, cost)
    goal = ComparisonGoal.of(tuple(chosen), question, confidence, decide, indifference, given)
    result = collect(env, chosen, goal, CollectionSettings(cost=cost, **collecting))
    return cast(ComparisonResult, result)
