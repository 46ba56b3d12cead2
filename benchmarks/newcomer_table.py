"""What a newcomer sees: trained policies evaluated with critics, beside their plain mean return.

`python -m benchmarks.newcomer_table` prints a table for Markdown. Every row is one evaluation, both
estimates from the same episodes; the truth is the mean of many more.
"""

import argparse
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import revar
from revar.experiments.critic_problems import Network, SoftmaxNetwork

EPISODES = 100
PARTS = 10  # of the episodes for the truth


class PictureOfCartPole(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole seen as an image of 84 x 84 x 3: where cart and pole are, and how fast they move."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space = spaces.Box(0, 255, (84, 84, 3), np.uint8)

    def observation(self, observation: Any) -> Any:
        """Every number as a bright bar at a height of its own, in colours by the half it is in."""
        image = np.zeros((84, 84, 3), dtype=np.uint8)
        for place, (number, most) in enumerate(
            zip(observation, (2.4, 3.0, 0.21, 3.0), strict=True)
        ):
            column = int(np.clip(41.5 + 41.5 * number / most, 3, 80))
            image[21 * place : 21 * place + 21, column - 3 : column + 4] = 255
        return image


def balance_by_picture(image: Any) -> list[float]:
    """Push to where the bars of the pole's angle and turning lie."""
    columns = [image[21 * place + 10, :, 0].nonzero()[0].mean() / 41.5 - 1.0 for place in (2, 3)]
    right = 1.0 / (1.0 + np.exp(-3.0 * (0.21 * columns[0] + 1.5 * columns[1])))
    return [1.0 - right, right]


def _greedy(network: Network) -> Callable[[Any], int]:
    return lambda observation: int(np.argmax(network(observation)))


def rows() -> list[tuple[str, Any, Any, int]]:
    """Name, environment, policy and horizon."""
    cart, lander = Network("cartpole_ppo"), Network("lunarlander_ppo")
    pendulum = Network("pendulum_ppo")
    return [
        ("CartPole, PPO, sampled", "CartPole-v1", SoftmaxNetwork(cart), 200),
        (
            "CartPole, PPO, deterministic",
            "CartPole-v1",
            revar.DeterministicPolicy(_greedy(cart)),
            200,
        ),
        ("LunarLander, PPO, sampled", "LunarLander-v3", SoftmaxNetwork(lander), 300),
        (
            "Pendulum, PPO, deterministic",
            "Pendulum-v1",
            revar.DeterministicPolicy(pendulum),
            200,
        ),
        ("CartPole as an image", PictureOfCartPole, balance_by_picture, 200),
    ]


def _truth(env: Any, policy: Any, episodes: int, settings: dict[str, Any]) -> tuple[float, float]:
    """The mean return of many episodes, some at a time: images of all of them take gigabytes."""
    parts = [
        revar.evaluate(
            env, policy, episodes=episodes // PARTS, seed=100 + part, method="mean", **settings
        )
        for part in range(PARTS)
    ]
    errors = [part.standard_error for part in parts]
    return (
        float(np.mean([part.value for part in parts])),
        float(np.sqrt(np.mean(np.square(errors)) / PARTS)),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=int, default=3000, help="episodes for the truth")
    parser.add_argument("--row", help="rows whose name contains this")
    options = parser.parse_args()
    print("| | truth | mean return | with critics | gain |")
    print("|---|---|---|---|---:|")
    for name, env, policy, horizon in rows():
        if options.row and options.row not in name:
            continue
        settings: dict[str, Any] = {"horizon": horizon}
        truth, error = _truth(env, policy, options.truth, settings)
        found = revar.evaluate(env, policy, episodes=EPISODES, seed=2, method="critic", **settings)
        plain = found.return_findings.corrected
        reach = found.quantile * plain.mean_return_error
        print(
            f"| {name} | {truth:.2f} ± {error:.2f} | {plain.mean_return:.2f} "
            f"± {reach:.2f} | {found.value:.2f} ± {found.half_width:.2f} | {found.gain:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
