"""A trained model as the target policy, through the adapter for `predict`.

Stable-Baselines3 models have `predict(observation, deterministic=True)`; so has the small Q-learner
below, which stands in for one so that the example needs nothing else. With the real thing:

    model = stable_baselines3.DQN.load("lake.zip")
    revar.evaluate("FrozenLake-v1", model, episodes=2000)

and where observations are continuous, with actions drawn as in training:

    model = stable_baselines3.PPO.load("pole.zip")
    revar.evaluate("CartPole-v1", revar.policy_from_sb3(model), episodes=100)
"""

import gymnasium
import numpy as np

import revar


class QLearner:
    """Learns the lake by trial and error, and predicts as a trained model does."""

    def __init__(self, states, actions):
        self.values = np.full((states, actions), 0.5)

    def learn(self, env, episodes, rng):
        for _ in range(episodes):
            state, _ = env.reset()
            over = False
            while not over:
                greedy = rng.random() > 0.2
                action = int(self.values[state].argmax()) if greedy else int(rng.integers(4))
                after, reward, terminated, truncated, _ = env.step(action)
                ahead = 0.0 if terminated else 0.99 * self.values[after].max()
                self.values[state, action] += 0.05 * (reward + ahead - self.values[state, action])
                state, over = after, terminated or truncated
        return self

    def predict(self, observation, deterministic=False):
        return np.array(self.values[observation].argmax()), None


env = gymnasium.make("FrozenLake-v1")
env.reset(seed=0)
rng = np.random.default_rng(0)
learner = QLearner(16, 4)
exact = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
for stage in range(3):
    learner.learn(env, 1000, rng)
    policy = revar.policy_from_predictor(learner, actions=4, epsilon=0.1)
    result = revar.evaluate("FrozenLake-v1", policy, episodes=500, discount=0.99, seed=stage)
    truth = revar.policy_value(exact, [policy(state) for state in range(16)])
    print(f"after {1000 * (stage + 1)} episodes of training: {result} (exact: {truth:.3f})")
