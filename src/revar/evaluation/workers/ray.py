"""A worker pool of Ray actors, on this machine or on a cluster."""

import pickle
from typing import Any

from revar.cluster import start_ray
from revar.errors import InputError, require_extra
from revar.evaluation.workers.pool import Plan, Request, Setup, WorkerDeath


class RayPool:
    """One actor a worker, on one core each where there are as many.

    A plan is put into Ray's object store once, from where each machine fetches it once.
    """

    def __init__(self, setup: Setup, workers: int, address: str | None) -> None:
        self._ray: Any = require_extra("ray", "ray")
        self._started = start_ray(self._ray, address, workers)
        self._free: list[Any] = []
        self._busy: dict[Any, tuple[Any, Request]] = {}  # by what will hold the batch
        self._plan: tuple[int, Any] = (-1, None)  # the version and where it is stored
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        # Workers beyond the cores would wait for ever; environments that block do not need one.
        self._actor = self._ray.remote(
            num_cpus=1 if cores >= workers else 0, max_restarts=0, scheduling_strategy="SPREAD"
        )(Actor)
        try:
            self._setup = self._ray.put(setup)
        except (TypeError, pickle.PicklingError) as error:
            self.close()
            raise InputError(f"env, policy, cost or limits cannot be sent: {error}") from error
        self._free = [self._actor.remote(self._setup) for _ in range(workers)]

    @property
    def idle(self) -> int:
        """Actors without a request."""
        return len(self._free)

    def give(self, request: Request, plan: Plan) -> None:
        """To the actor that has been free for longest."""
        if self._plan[0] != plan.version:
            self._plan = plan.version, self._ray.put(plan)
        actor = self._free.pop(0)
        # In a list, so that the actor fetches it only where it needs it.
        self._busy[actor.play.remote(request, plan.version, [self._plan[1]])] = actor, request

    def wait(self, seconds: float) -> list[Any]:
        """Batches that have been played; actors that died are replaced."""
        reports: list[Any] = []
        if not self._busy:
            return reports
        done, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=seconds)
        for place in done:
            actor, request = self._busy.pop(place)
            try:
                reports.append(self._ray.get(place))
                self._free.append(actor)
            except self._ray.exceptions.RayError as error:
                self._ray.kill(actor)
                self._free.append(self._actor.remote(self._setup))
                lines = str(error).strip().splitlines() or [type(error).__name__]
                reports.append(WorkerDeath(request, " ".join(dict.fromkeys((lines[0], lines[-1])))))
        return reports

    def close(self) -> None:
        """End all actors, and the cluster if it was started here."""
        for actor in [*self._free, *(actor for actor, _ in self._busy.values())]:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()


class Actor:
    """In the worker's process: a worker, and the plan that it has."""

    def __init__(self, setup: Setup) -> None:
        self._worker = setup.start()

    def play(self, request: Request, version: int, plan: list[Any]) -> Any:
        """The batch of a request, under the plan of that version."""
        if self._worker.plan_version != version:
            self._worker.plan = require_extra("ray", "ray").get(plan[0])
        return self._worker.play(request)
