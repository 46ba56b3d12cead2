"""FrozenLake: what is a policy worth on slippery ice, and what does choosing the actions buy?

The environment is Gymnasium's own, stepped for real, with nothing known about it. Because this one
publishes its transition table, the exact value can be printed beside the estimate.
"""

import revar

lake = revar.find_problem("frozenlake", epsilon=0.5)  # the best walk, half of the time at random
result = revar.evaluate("FrozenLake-v1", lake.policy, episodes=2000, discount=0.99, seed=0)
print(result)
print()
print(result.table())
print()
exact = revar.policy_value(revar.from_gymnasium("FrozenLake-v1", discount=0.99), lake.policy)
print(f"the exact value is {exact:.4f}")
