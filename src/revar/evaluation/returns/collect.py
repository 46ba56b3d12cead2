"""Collect whole episodes of target policies, in any environment, for their values."""

from functools import partial
from math import inf
from typing import Any

from revar.collection.collection import new_seed
from revar.datasets.files import Conditions, load_collected
from revar.environments.opening import (
    built_in_discount,
    built_in_policy,
    horizon_of,
    is_opened_by_id,
)
from revar.errors import InputError
from revar.evaluation.amounts import describe
from revar.evaluation.episode_file import EpisodeFile
from revar.evaluation.goals import ComparisonGoal, ValueGoal
from revar.evaluation.identity import describe_environment
from revar.evaluation.result import CollectedResult
from revar.evaluation.resuming import SAME_RETURNS, check_same, refuse_overspent
from revar.evaluation.returns.critics import CriticChoice, Served, choose_critics
from revar.evaluation.returns.features import check_steady, check_stored_features
from revar.evaluation.returns.fingerprint import Identity
from revar.evaluation.returns.fitting import ReturnEstimator
from revar.evaluation.returns.paired import PairedEpisodes, PairedEstimator, make_players
from revar.evaluation.returns.play import EpisodePlayer
from revar.evaluation.returns.prior import check_practice, use_prior
from revar.evaluation.returns.records import Setting
from revar.evaluation.returns.resets import Resets, begin_again
from revar.evaluation.returns.run import ReturnEvaluation
from revar.evaluation.returns.workers import EpisodesSetup, PoolEpisodes
from revar.evaluation.settings import (
    CollectionSettings,
    path_to_write,
    show_progress,
    with_words,
)
from revar.evaluation.target_policies import name_policy
from revar.evaluation.workers.pool import choose_pool
from revar.interrupts import catch_interrupts
from revar.model.episodes import Episodes
from revar.model.limits import check_limits
from revar.model.validation import check_discount, check_whole
from revar.policies.sampled import known_law
from revar.strategies.strategy import find_strategy


def collect_returns(
    env: Any,
    opened: Any,
    policies: dict[str, Any],
    goal: ValueGoal | ComparisonGoal,
    settings: CollectionSettings,
    method: str,
) -> CollectedResult:
    """Play the policies themselves until the goal is reached or the budget is spent."""
    _refuse_what_is_for_tables(settings, method)
    stored, earlier = _load_stored(settings.resume)
    seed = _seed(settings.seed, earlier)
    options, budget = settings.env_options, goal.budget
    pool = choose_pool(
        env,
        settings.workers,
        settings.engine,
        settings.batch,
        settings.address,
        settings.environments,
    )
    policies = {name: _given(policy, name, env, options) for name, policy in policies.items()}
    horizon = horizon_of(opened, settings.horizon)
    discount = built_in_discount(env, options) if settings.discount is None else settings.discount
    discount = check_discount(discount)
    cost = None if budget.unit == "steps" else settings.cost
    with catch_interrupts() as interrupt:
        local = make_players(
            opened,
            policies,
            horizon=horizon,
            seed=seed,
            features=settings.features,
            cost=cost,
            interrupt=interrupt,
        )
        setting: Setting = local.setting
        identity = Identity(local, policies, None if isinstance(env, str) else opened)
        conditions = _conditions(env, opened, setting, method, discount, seed, goal, settings)
        if stored is not None and earlier is not None:
            check_same(earlier, conditions, SAME_RETURNS)
            refuse_overspent(stored, earlier, budget)
            _check_stored(stored, setting)
            check_stored_features(stored, local)
            identity.check(stored, earlier)
        resets = _resets(env, local, settings.resets, earlier)
        joined, prior_seed, practice = use_prior(
            env, settings.prior, setting, conditions, identity.answers
        )
        choice = CriticChoice()
        if method == "critic":
            served = _served(local, (seed,) if prior_seed is None else (seed, prior_seed))
            choice = choose_critics(settings.critics, served)
            if practice is not None:
                practice = check_practice(practice, setting, served)
        check = partial(check_steady, setting)
        estimator: ReturnEstimator | PairedEstimator
        if isinstance(goal, ValueGoal):
            estimator = ReturnEstimator(
                method, horizon, discount, seed, goal.confidence, goal.quantile, choice, resets,
                joined, prior_seed, practice, check,
            )  # fmt: skip
        else:
            alone = (method, horizon, discount, seed, goal.confidence, inf, choice, resets)
            each = [ReturnEstimator(*alone, check=check) for _ in policies]
            estimator = PairedEstimator(goal.names, local.laws, each)
        estimator.environment_note = identity.changes
        player: EpisodePlayer | PairedEpisodes | PoolEpisodes = local
        if pool is not None:
            setup = EpisodesSetup(env, options, policies, horizon, seed, settings.features, cost)
            player = PoolEpisodes(local, pool, partial(pool.start, setup, interrupt), interrupt)
        evaluation = ReturnEvaluation(
            player,
            goal,
            estimator,
            conditions,
            identity,
            EpisodeFile(path_to_write(settings.save, settings.resume)),
            interrupt,
            stored,
        )
        try:
            with show_progress(settings.progress, method, budget.unit) as report:
                return evaluation.run(with_words(report))
        finally:
            if isinstance(player, PoolEpisodes):
                player.close()


def _seed(seed: int | None, earlier: Conditions | None) -> int:
    """The one that is given, that of the file, or a new one."""
    if seed is None:
        seed = new_seed() if earlier is None else earlier.seed
    return check_whole(seed, "seed")


def _given(policy: Any, name: str, env: Any, options: dict[str, Any] | None) -> Any:
    """The policy, or that of a built-in problem."""
    if policy is not None:
        return policy
    with name_policy(name):
        return built_in_policy(env, options)


def _served(player: Any, seeds: tuple[int, ...]) -> Served:
    """The episodes that critics are to serve."""
    setting = player.setting
    laws = [known_law(each.policy) for each in getattr(player, "settings", [setting])]
    return Served(
        setting.observations,
        None if setting.features is None else partial(_count_features, player),
        tuple(law for law in laws if law is not None),
        seeds,
    )


def _count_features(player: Any) -> int:
    """How many there are of an observation: they are asked for at the first."""
    if player.setting.features.width is None:
        player.setting.features.row(player.first_observation())
    return int(player.setting.features.width)


def _refuse_what_is_for_tables(settings: CollectionSettings, method: str) -> None:
    strategy = find_strategy(settings.strategy).id
    if strategy not in ("flow", "on-policy"):
        raise InputError(
            f"method {method!r} plays the target policy itself; strategy {strategy!r} needs "
            f"method='table'"
        )
    if not check_limits(settings.limits).none:
        raise InputError(
            f"method {method!r} plays the target policy itself and cannot keep limits=; they need "
            f"method='table'"
        )
    if settings.bins is not None:
        raise InputError(f"bins make a table; method {method!r} takes observations as they are")
    if method == "mean":
        for name in ("critics", "features", "resets"):
            if getattr(settings, name):
                whose = "method 'mean'"
                if settings.method is None:
                    whose = f"{settings.resume} was collected with {whose}, which"
                raise InputError(f"{whose} has no critics, so that {name}= is for nothing")


def _load_stored(resume: Any) -> tuple[Episodes | None, Conditions | None]:
    if resume is None:
        return None, None
    stored, earlier = load_collected(resume)
    if earlier is None:
        raise InputError(f"{resume} was not collected by an evaluation; give it as prior")
    if not isinstance(stored, Episodes):
        raise InputError(f"{resume} was collected with method 'table', and has no observations")
    return stored, earlier


def _check_stored(stored: Episodes, setting: Setting) -> None:
    """Refuse stored episodes of other spaces."""
    for name, now in (
        ("observation space", setting.observation_space),
        ("action space", setting.action_space),
    ):
        before = getattr(stored, name.replace(" ", "_"))
        if before != now:
            raise InputError(f"the file was collected with {name} {before}; now it is {now}")


def _resets(env: Any, player: Any, asked: int | None, earlier: Conditions | None) -> Resets:
    again = partial(begin_again, player)
    if asked is not None:
        return Resets(player.resets, again, count=check_whole(asked, "resets"))
    if not is_opened_by_id(env):
        note = "as the environment was handed in; resets= says how many"
        return Resets(player.resets, again, each=0, note=note)
    return Resets(player.resets, again, each=None if earlier is None else earlier.resets)


def _conditions(
    env: Any,
    opened: Any,
    setting: Setting,
    method: str,
    discount: float,
    seed: int,
    goal: ValueGoal | ComparisonGoal,
    settings: CollectionSettings,
) -> Conditions:
    """What a run that goes on from the file must be like."""
    several, budget = len(goal.names) > 1, goal.budget
    return Conditions(
        environment=env if isinstance(env, str) else _name(opened),
        environment_details=None if isinstance(env, str) else describe_environment(opened),
        strategy="on-policy",
        horizon=setting.horizon,
        discount=discount,
        seed=seed,
        episodes=int(budget.amount) if budget.by_episode else 0,
        budget_unit=budget.unit,
        budget_amount=budget.amount,
        cost=describe(settings.cost) if budget.unit == "cost" else None,
        options=repr(sorted((settings.env_options or {}).items())),
        method=method,
        names=goal.names if several else None,
        question=goal.question if several else None,
    )


def _name(opened: Any) -> str:
    """Of the environment's class, whether one or several are played side by side."""
    single = getattr(opened, "envs", [opened])[0]
    return type(single.unwrapped).__name__
