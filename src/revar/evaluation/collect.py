"""Collect episodes in a real environment until a goal is reached or the budget is spent."""

from dataclasses import replace
from functools import partial
from typing import Any

from revar.collection import Collection
from revar.datasets.files import Conditions, dataset_of, load_collected
from revar.environments.observations import encoding_of
from revar.environments.opening import (
    action_count,
    built_in_discount,
    built_in_model,
    built_in_policy,
    horizon_of,
    open_environments,
)
from revar.errors import InputError
from revar.evaluation.amounts import StepAmounts, describe
from revar.evaluation.goals import ComparisonGoal, Goal, ValueGoal
from revar.evaluation.limits import check_beforehand, describe_limits, encode_limits
from revar.evaluation.players import Player, VectorPlayer
from revar.evaluation.result import CollectedResult
from revar.evaluation.returns.collect import collect_returns
from revar.evaluation.run import Evaluation
from revar.evaluation.settings import (
    CollectionSettings,
    choose_method,
    path_to_write,
    show_progress,
)
from revar.evaluation.target_policies import (
    name_policy,
    target_policy_of,
)
from revar.evaluation.workers.player import PoolPlayer
from revar.evaluation.workers.pool import PoolSettings, choose_pool, default_batch
from revar.evaluation.workers.worker import WorkerSetup
from revar.interrupts import catch_interrupts
from revar.model.episodes import Episodes
from revar.model.limits import check_limits
from revar.model.validation import check_count
from revar.strategies.strategy import find_strategy


def collect(
    env: Any, policies: dict[str, Any], goal: Goal, settings: CollectionSettings
) -> CollectedResult:
    """Collect episodes for the goal, within its budget; policies have the goal's names."""
    side_by_side = check_count(settings.environments, "environments")
    opened = open_environments(env, settings.env_options, side_by_side)
    try:
        method = choose_method(env, opened, policies.values(), settings)
        if method == "table":
            return _collect_table(env, opened, policies, goal, settings)
        assert isinstance(goal, ValueGoal | ComparisonGoal)
        return collect_returns(env, opened, policies, goal, settings, method)
    finally:
        if opened is not env:
            opened.close()


def _collect_table(
    env: Any, opened: Any, policies: dict[str, Any], goal: Goal, settings: CollectionSettings
) -> CollectedResult:
    strategy, budget = find_strategy(settings.strategy), goal.budget
    seed, workers, batch = settings.seed, settings.workers, settings.batch
    stored, earlier = (None, None) if settings.resume is None else load_collected(settings.resume)
    if stored is not None and earlier is None:
        raise InputError(f"{settings.resume} was not collected by an evaluation; give it as prior")
    if earlier is not None:
        seed = earlier.seed if seed is None else seed
        workers = earlier.workers if workers is None else workers
        batch = earlier.batch if batch is None else batch
    if isinstance(stored, Episodes):
        raise InputError(
            f"{settings.resume} has whole episodes of observations; they serve methods 'critic' "
            f"and 'mean', not 'table'"
        )
    prior = None if settings.prior is None else dataset_of(settings.prior, "prior")
    pool = choose_pool(
        env,
        workers,
        settings.engine,
        batch,
        settings.address,
        settings.environments,
        single=earlier is not None and earlier.workers == 1,
    )
    options = settings.env_options
    player: Player | VectorPlayer | PoolPlayer | None = None
    try:
        discount = settings.discount
        encoding, actions = encoding_of(opened, settings.bins), action_count(opened)
        limits = encode_limits(check_limits(settings.limits), encoding, actions)
        amounts = StepAmounts(budget, settings.cost, limits, encoding, actions)
        collection = Collection(
            strategy,
            horizon=horizon_of(opened, settings.horizon),
            discount=built_in_discount(env, options) if discount is None else discount,
            budget=budget,
            limits=limits,
            seed=seed,
            actions=actions,
            names=goal.names,
            combinations=goal.combinations,
            dearest_step=amounts.dearest_step,
        )
        if pool is not None and batch is None and budget.unit != "cost":
            pool = replace(pool, longest=default_batch(collection.affordable(), pool.workers))
        for name, policy in policies.items():
            if policy is None:
                with name_policy(name):
                    policies = {**policies, name: built_in_policy(env, options)}
        target = target_policy_of(opened, policies, settings.bins)
        collection.first_label = target.first_label
        check_beforehand(built_in_model(env, options), collection, target, amounts)
        with catch_interrupts() as interrupt:
            if prior is not None:
                collection.learn_from(amounts.add_known(prior), target)
            if pool is None:
                make = VectorPlayer if hasattr(opened, "num_envs") else Player
                player = make(opened, encoding, target, amounts, collection.seed, interrupt)
            else:
                setup = WorkerSetup(
                    env,
                    options,
                    policies,
                    goal.combinations,
                    settings.bins,
                    strategy,
                    collection.horizon,
                    collection.discount,
                    budget,
                    collection.seed,
                    collection.prior_episodes,
                    settings.cost,
                    limits,
                )
                start = partial(pool.start, setup, interrupt)
                player = PoolPlayer(collection, target, pool, start, interrupt)
            evaluation = Evaluation(
                collection,
                player,
                target,
                amounts,
                _conditions(env, opened, collection, player.width, pool, goal, settings),
                goal,
                goal.times,
                None if prior is None else amounts.add_known(prior),
                path_to_write(settings.save, settings.resume),
                interrupt,
            )
            if stored is not None and earlier is not None:
                evaluation.resume_from(stored, earlier)
            with show_progress(settings.progress, strategy.id, budget.unit) as report:
                return evaluation.run(report)
    finally:
        if isinstance(player, PoolPlayer):
            player.close()


def _conditions(
    env: Any,
    opened: Any,
    collection: Collection,
    width: int,
    pool: PoolSettings | None,
    goal: Goal,
    settings: CollectionSettings,
) -> Conditions:
    """What a run that goes on from the file must be like."""
    several, budget = len(goal.names) > 1, goal.budget
    return Conditions(
        environment=env if isinstance(env, str) else type(opened.unwrapped).__name__,
        strategy=repr(collection.strategy),
        horizon=collection.horizon,
        discount=collection.discount,
        seed=collection.seed,
        episodes=int(budget.amount) if budget.by_episode else 0,
        budget_unit=budget.unit,
        budget_amount=budget.amount,
        cost=describe(settings.cost) if budget.unit == "cost" else None,
        limits=describe_limits(collection.limits),
        environments=width,
        workers=None if pool is None else pool.workers,
        batch=None if pool is None else pool.longest,
        prior_episodes=collection.prior_episodes,
        options=repr(sorted((settings.env_options or {}).items())),
        bins=repr(settings.bins),
        names=goal.names if several else None,
        question=goal.question if several else None,
    )
