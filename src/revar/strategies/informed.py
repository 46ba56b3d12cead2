"""Behaviors that a model informs, sampled: what the peers that need a model have in common.

Their papers compute the behavior from data that was there before. Here it is either computed from
the true model, or from the run's own data: the target policy is followed up to a first plan, and
plans are made anew at numbers of episodes that grow geometrically.
"""

from collections.abc import Callable

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.model.reachability import expand
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import checked_count
from revar.strategies.plug_in import plug_in_model
from revar.strategies.rule import CompiledRule, Memory, Question, Revise
from revar.strategies.schedule import growing_times
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan
from revar.theory.importance import outcome_model
from revar.theory.importance_steps import OutcomeModel

# A plan is made anew when the episodes have grown by this factor.
GROWTH = 1.5

# (question, model, visits [S, A], parameters, behavior [1 or L, S, A] to be overwritten)
Design = Callable[[Question, OutcomeModel, IntArray, FloatArray, FloatArray], None]


def check_informed(floor: float, first_plan: int) -> None:
    """Refuse parameters that would leave an action out, or a plan without data."""
    if not 0.0 < floor <= 1.0:
        raise InputError(f"floor is {floor}; it must lie above 0 and at most at 1")
    checked_count(first_plan, "first_plan")


def informed_by_model(
    design: Design, task: Task, parameters: FloatArray, tables: int, asker: str
) -> Plan:
    """The plan that follows from the true model, for good."""
    mdp = task.known_model(f"{asker} with a known model")
    question = Question(task.policy, mdp.arrays.initial, task.horizon, task.discount, 0)
    behavior = _target(task, tables)
    everything = np.ones(task.policy.shape, dtype=np.int64)
    design(question, outcome_model(mdp), everything, parameters, behavior)
    return Plan(behavior, Selection.SAMPLE)


def informed_by_data(
    design: Design,
    task: Task,
    statistics: VisitStatistics,
    parameters: FloatArray,
    tables: int,
    first_plan: int,
) -> Plan:
    """The plan that follows from the statistics, until the next one is due."""
    observed = statistics.observed(task.states)
    episode = int(observed.initial_count.sum())
    behavior = _target(task, tables)
    if episode >= first_plan:
        model = plug_in_model(observed)
        design(Question.of(task, observed, episode), model, observed.visits, parameters, behavior)
    lasts = int(_times(episode, first_plan)[-1]) - episode
    return Plan(behavior, Selection.SAMPLE, lasts=lasts)


def informed_rule(
    on_episode: Revise, task: Task, parameters: FloatArray, tables: int, first_plan: int
) -> CompiledRule:
    """The same plans at the same times: `parameters`, then the times, are the rule's own."""
    times = _times(task.episodes or first_plan, first_plan)
    return CompiledRule(
        Memory.of(_target(task, tables)), np.append(parameters, times), on_episode=on_episode
    )


def _times(episode: int, first_plan: int) -> IntArray:
    return growing_times(episode, first_plan, lambda _: GROWTH)


def _target(task: Task, tables: int) -> FloatArray:
    """The target policy as [tables, S, A]."""
    return np.repeat(task.policy[None], tables, axis=0)


@compiled
def believed_layers(question: Question, outcomes: Outcomes) -> Layers:
    """The states that the target policy can be in, as far as is known."""
    start, states = expand(outcomes, question.initial, question.policy > 0, question.horizon)
    return Layers(start, states)


@compiled
def mix_with_target(
    policy: FloatArray, visits: IntArray, scores: FloatArray, floor: float, behavior: FloatArray
) -> None:
    """Scores made to shares, `floor` of them the target policy's, [1 or L, S, A].

    No ratio pi/b exceeds 1/floor. The target policy itself is followed where all scores are zero,
    and in states where it takes an action that has not been tried: nothing is known about it.
    """
    tables, states, actions = scores.shape
    for s in range(states):
        tried = True
        for a in range(actions):
            tried &= policy[s, a] == 0.0 or visits[s, a] > 0
        for t in range(tables):
            total = 0.0
            for a in range(actions):
                total += scores[t, s, a]
            for a in range(actions):
                behavior[t, s, a] = policy[s, a]
                if tried and total > 0.0:
                    share = scores[t, s, a] / total
                    behavior[t, s, a] = (1.0 - floor) * share + floor * policy[s, a]
