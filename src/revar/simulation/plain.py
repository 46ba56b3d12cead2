"""One run in plain Python: for strategies without a compiled rule, and to check the compiled loop.

It plays the identical stream through the planner and the follower that collection uses; only
speed differs.
"""

from collections.abc import Callable

import numpy as np

from revar.collection.plans import PlanInForce, Planner
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimate, Estimator, JointEstimate
from revar.estimators.smallest_error import SmallestError, mixed_estimate
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset, Trajectory
from revar.simulation.result import Job
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward
from revar.strategies.strategy import Strategy, visible_task


class PlainRun:
    """A run under way over states that are all known: statistics, plan, and the next action."""

    def __init__(
        self,
        strategy: Strategy,
        task: Task,
        statistics: VisitStatistics,
        rng: np.random.Generator,
    ) -> None:
        self.task = task
        self.statistics = statistics
        self.rng = rng
        self.episode = 0
        self.plan_in_force: PlanInForce | None = None
        self._planner = Planner(strategy)
        self._policy = np.array(task.policy)  # [S, A]

    def act(self, step: int, state: int) -> tuple[int, float]:
        """The action to take at that step, and its propensity (NaN if it was not sampled).

        A plan that is due is made before the first step, from finished episodes; one that holds
        for a single step is made before every step.
        """
        plan = self.plan_in_force
        if plan is None or plan.plan.lasts == 0 or (step == 0 and plan.expired):
            plan = self.plan_in_force = self._planner.plan(self.task, self.statistics)
        policy = self._policy[state : state + 1]
        visits = self.statistics.visits_in(state)
        place = (self.episode, step, state)
        action, propensity = plan.choose_action(*place, policy, visits, self.rng)
        plan.take(*place, action)
        return action, propensity


def play_episode(run: PlainRun, world: World) -> Trajectory:
    """Play one episode of the simulated environment."""
    states: list[int] = []
    actions: list[int] = []
    rewards: list[float] = []
    propensities: list[float] = []
    task, rng = run.task, run.rng
    state = draw_first_state(world, rng)
    successor = ENDED
    for step in range(task.horizon):
        action, propensity = run.act(step, state)
        if step == 0:
            run.statistics.start_episode(state)
        pair = state * task.actions + action
        slot = draw_outcome(world, pair, rng)
        reward = draw_reward(world, slot if world.by_outcome else pair, rng)
        successor = int(world.successor[slot])
        successor = ENDED if successor == task.states else successor
        run.statistics.record_step(state, action, reward, successor)
        states.append(state)
        actions.append(action)
        rewards.append(reward)
        propensities.append(propensity)
        if successor == ENDED:
            break
        state = successor
    run.episode += 1
    if run.plan_in_force is not None:
        run.plan_in_force.episodes += 1
    return Trajectory.of(
        states, actions, rewards, last_successor=successor, propensities=propensities
    )


def make_plain_player(job: Job) -> Callable[[int], bool]:
    """What plays a run of the job by its number: False if it was stopped."""
    world = World.of(job.mdp)
    task = visible_task(job.strategy, job.task)
    assert job.task.budget is not None
    budget, by_episode = job.task.budget.amount, job.task.budget.by_episode
    visit_cost = job.task.visit_cost

    def play(run: int) -> bool:
        statistics = VisitStatistics.for_model(job.mdp)
        plain_run = PlainRun(job.strategy, task, statistics, job.stream(run))
        trajectories: list[Trajectory] = []
        spent, point = 0.0, 0
        while spent < budget:
            trajectories.append(play_episode(plain_run, world))
            latest = trajectories[-1]
            costs = [1.0] if by_episode else visit_cost[latest.states, latest.actions].tolist()
            for cost in costs:  # one by one, as the compiled loop adds them
                spent += cost
            while point < job.checkpoints.size and spent >= job.checkpoints[point]:
                estimate = _estimate(job.estimator, job.task, statistics, trajectories)
                job.write(run, point, estimate)
                point += 1
            job.finished[run, 0], job.spent[run, 0] = len(trajectories), spent
            if job.stop[0] != 0 and spent < budget:
                return False
        job.visits[run] = statistics.visits
        if job.keep_episodes:
            job.datasets[run] = Dataset.of(trajectories)
        return True

    return play


def _estimate(
    estimator: Estimator, task: Task, statistics: VisitStatistics, episodes: list[Trajectory]
) -> Estimate | JointEstimate | None:
    if len(episodes) < estimator.least_episodes:
        return None
    if isinstance(estimator, CertaintyEquivalence):
        return estimator.joint_estimate(task, statistics)
    if isinstance(estimator, SmallestError):
        return mixed_estimate(task, statistics, Dataset.of(episodes))
    return estimator.estimate(
        task, Dataset.of(episodes) if estimator.needs_episodes else statistics
    )
