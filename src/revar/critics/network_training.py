"""Many small networks that learn at once, in JAX: on a GPU where JAX finds one.

All networks go through one compiled call, batched over networks. Rows of data are padded to one of
few sizes, so that another number of episodes seldom compiles anew.
"""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from revar.critics.network_critic import Parameters, forward
from revar.model.arrays import IntArray

CHUNK = 2_048  # rows of each network that are evaluated at a time
MEMORY = 0.01  # how much of an average of parameters is that of the last step

# By default JAX takes most of a GPU's memory at its first use; some megabytes do here.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


class State(NamedTuple):
    """Networks while they learn; every array has a first axis for the networks."""

    parameters: Parameters
    average: Parameters  # of late: what they are evaluated with
    moments: Any  # of gradients, as Adam keeps them


class Lessons(NamedTuple):
    """What networks learn from."""

    inputs: Any  # [world, row, D] scaled
    scores: Any  # [row, m]
    weights: Any  # [row]
    world: Any  # [network] whose inputs and targets it reads


def start_learning(parameters: Parameters) -> State:
    """Networks that have learned nothing yet."""
    given = tuple(jnp.asarray(array) for array in parameters)
    return State(given, given, _adam(0.0).init(given))


def padded(values: Any, axis: int) -> Any:
    """In single precision, with zeros at the end of the axis up to one of few sizes."""
    count = values.shape[axis]
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, _padded_size(count) - count)
    return jnp.asarray(np.pad(np.asarray(values, dtype=np.float32), widths))


def in_chunks(rows: Sequence[IntArray]) -> Any:
    """Rows of every network, [chunk, network, CHUNK]; the first row fills the last chunk."""
    count = _padded_size(max(each.size for each in rows))
    chunks = np.zeros((len(rows), -(-count // CHUNK) * CHUNK), dtype=np.int32)
    for i, each in enumerate(rows):
        chunks[i, : each.size] = each
    return jnp.asarray(chunks.reshape(len(rows), -1, CHUNK).swapaxes(0, 1))


def _padded_size(count: int) -> int:
    """At least `count`: a multiple of 1/8 of the power of two below it, and of 512."""
    unit = max(1 << max(count.bit_length() - 4, 0), 512)
    return -(-count // unit) * unit


@jax.jit
def learn(
    state: State, lessons: Lessons, targets: Any, batches: Any, rates: Any, decay: Any
) -> State:
    """A step of Adam for every rate, with rows batches [step, network, batch]."""
    optimizer = _adam(decay)
    world = lessons.world[:, None]

    def step(state: State, now: tuple[Any, Any]) -> tuple[State, None]:
        rows, rate = now
        gradient = jax.grad(_loss)(
            state.parameters,
            lessons.inputs[world, rows],
            lessons.scores[rows],
            targets[world, rows],
            lessons.weights[rows],
        )
        updates, moments = optimizer.update(gradient, state.moments, state.parameters)
        parameters = jax.tree.map(lambda p, u: p - rate * u, state.parameters, updates)
        average = jax.tree.map(lambda a, p: a + MEMORY * (p - a), state.average, parameters)
        return State(parameters, average, moments), None

    return jax.lax.scan(step, state, (batches, rates))[0]


@jax.jit
def evaluate(parameters: Parameters, lessons: Lessons, chunks: Any) -> tuple[Any, Any]:
    """Values and advantages of every network on its own rows, [network, row]."""
    world = lessons.world[:, None]

    def evaluate_chunk(rows: Any) -> tuple[Any, Any]:
        outputs = _outputs(parameters, lessons.inputs[world, rows])
        return outputs[..., 0], jnp.sum(outputs[..., 1:] * lessons.scores[rows], axis=-1)

    networks = chunks.shape[1]
    values, advantages = jax.lax.map(evaluate_chunk, chunks)
    return (
        values.swapaxes(0, 1).reshape(networks, -1),
        advantages.swapaxes(0, 1).reshape(networks, -1),
    )


def _outputs(parameters: Parameters, inputs: Any) -> Any:
    return jax.vmap(partial(forward, tanh=jnp.tanh))(parameters, inputs)


def _loss(parameters: Parameters, inputs: Any, scores: Any, targets: Any, weights: Any) -> Any:
    outputs = _outputs(parameters, inputs)
    guesses = outputs[..., 0] + jnp.sum(outputs[..., 1:] * scores, axis=-1)
    return jnp.sum(jnp.mean(weights * (guesses - targets) ** 2, axis=-1))


def _adam(decay: float) -> Any:
    return optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(decay))
