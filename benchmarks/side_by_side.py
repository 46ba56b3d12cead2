"""Many episodes of CartPole-v1 or Pendulum-v1 at once, in NumPy: for runs by the hundred.

Dynamics are Gymnasium's. All episodes of a run draw from one generator, so that they are others
than those of `revar.evaluate`, of the same law.
"""

from typing import Any, NamedTuple

import numpy as np

from revar.critics.interface import Experience
from revar.experiments.critic_problems import CriticProblem
from revar.model.arrays import BoolArray, FloatArray
from revar.model.law import Categorical, Law, Normal
from revar.policies.continuous import DeterministicPolicy, GaussianPolicy

FORCE, GRAVITY, TICK = 10.0, 9.8, 0.02  # of CartPole
CART, POLE, HALF = 1.0, 0.1, 0.5
TORQUE, SPEED, INTERVAL = 2.0, 8.0, 0.05  # of Pendulum

Outcome = tuple[FloatArray, FloatArray, BoolArray]  # next states, rewards, whether they are over


class CartPole:
    """States are observations: place, speed, angle, turning."""

    def first(self, count: int, rng: np.random.Generator) -> FloatArray:
        """States after a reset, [count, 4]."""
        return rng.uniform(-0.05, 0.05, (count, 4))

    def observe(self, states: FloatArray) -> FloatArray:
        """What is seen of them."""
        return states

    def step(self, states: FloatArray, actions: FloatArray) -> Outcome:
        """Push left (0) or right (1)."""
        _, speed, angle, turning = states.T
        force = np.where(actions == 1, FORCE, -FORCE)
        cos, sin = np.cos(angle), np.sin(angle)
        whole = CART + POLE
        push = (force + POLE * HALF * turning**2 * sin) / whole
        turn = (GRAVITY * sin - cos * push) / (HALF * (4.0 / 3.0 - POLE * cos**2 / whole))
        move = push - POLE * HALF * turn * cos / whole
        changes = np.column_stack([speed, move, turning, turn])
        after = states + TICK * changes
        over = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * 2 * np.pi / 360)
        return after, np.ones(len(after)), over


class Pendulum:
    """States are an angle, 0 upright, and its speed."""

    def first(self, count: int, rng: np.random.Generator) -> FloatArray:
        """States after a reset, [count, 2]."""
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0], (count, 2))

    def observe(self, states: FloatArray) -> FloatArray:
        """Cosine, sine and speed."""
        return np.column_stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]])

    def step(self, states: FloatArray, actions: FloatArray) -> Outcome:
        """Turn by a torque, clipped."""
        angle, speed = states.T
        torque = np.clip(actions, -TORQUE, TORQUE)
        lean = (angle + np.pi) % (2 * np.pi) - np.pi
        rewards = -(lean**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * INTERVAL, -SPEED, SPEED)
        after = np.column_stack([angle + speed * INTERVAL, speed])
        return after, rewards, np.zeros(len(after), dtype=bool)


SYSTEMS: dict[str, Any] = {"CartPole-v1": CartPole(), "Pendulum-v1": Pendulum()}


class _Step(NamedTuple):
    """One of an episode."""

    observation: FloatArray
    action: FloatArray
    noise: FloatArray
    reward: float


def play_side_by_side(
    problem: CriticProblem, episodes: int, resets: int, rng: np.random.Generator
) -> Experience:
    """Episodes of the problem's policy, and first observations of others."""
    system, policy = SYSTEMS[problem.environment], problem.build_policy()
    states, going = system.first(episodes, rng), np.arange(episodes)
    played: list[list[_Step]] = [[] for _ in range(episodes)]
    for _ in range(problem.horizon):
        seen = _single(system.observe(states))
        actions, noise = _draw(policy, seen, rng)
        states, rewards, over = system.step(states, actions[:, 0])
        for row, episode in enumerate(going):
            played[episode].append(_Step(seen[row], actions[row], noise[row], rewards[row]))
        states, going = states[~over], going[~over]
        if not going.size:
            break
    lengths = np.array([len(steps) for steps in played])
    start = np.concatenate([[0], np.cumsum(lengths)])
    columns = zip(*(step for steps in played for step in steps), strict=True)
    seen, actions, noise, rewards = (np.array(column) for column in columns)
    number = np.arange(start[-1]) - np.repeat(start[:-1], lengths)
    law = _law(policy)
    return Experience(
        start,
        seen,
        number / problem.horizon,
        rewards,
        law.scores(actions, noise),
        actions,
        noise,
        law,
        1.0,
        _single(system.observe(system.first(resets, rng))),
    )


def _law(policy: Any) -> Law:
    if isinstance(policy, DeterministicPolicy):
        return Law()
    return Law((Normal(1) if isinstance(policy, GaussianPolicy) else Categorical(2),))


def _draw(policy: Any, seen: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Actions and what they were drawn from, [n, 1] and [n, noise]."""
    if isinstance(policy, DeterministicPolicy):
        return np.array([policy.function(each) for each in seen]), np.zeros((len(seen), 0))
    if isinstance(policy, GaussianPolicy):
        noise = rng.standard_normal((len(seen), 1))
        return np.array([policy.mean(each) for each in seen]) + policy.std * noise, noise
    chances = np.array([policy(each) for each in seen])
    taken = rng.random(len(seen)) < chances[:, 1]
    return taken[:, None].astype(np.float64), chances


def _single(seen: FloatArray) -> FloatArray:
    """In the precision that environments report."""
    return seen.astype(np.float32).astype(np.float64)
