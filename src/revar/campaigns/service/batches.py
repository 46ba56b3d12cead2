"""Routes that carry out many requests of one campaign in one HTTP request, and in few commits."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from revar.campaigns.commands import (
    ActionReply,
    Command,
    EpisodeReply,
    Reply,
    ask_action,
    tell_reward,
)
from revar.campaigns.events import Started
from revar.campaigns.service.campaign_thread import CampaignThread
from revar.campaigns.service.messages import (
    ActionOutcome,
    ActionOutcomes,
    ActMany,
    EpisodeOutcome,
    EpisodeOutcomes,
    ErrorDetail,
    RewardMany,
    StartMany,
)
from revar.campaigns.service.replies import describe, reply, retry_after
from revar.campaigns.service.routing import CAMPAIGN, find_thread, route
from revar.campaigns.storage import StorageError
from revar.errors import InputError

Asked = TypeVar("Asked")
Outcome = ActionReply | EpisodeReply | ErrorDetail


@route(
    "POST",
    CAMPAIGN + "/starts",
    "Start several episodes; each has an outcome of its own",
    takes=StartMany,
    gives={200: EpisodeOutcomes},
)
async def start_many(request: Request, body: StartMany) -> Response:
    """Places in the budget for as many as there are; others are asked to wait, as one would be."""
    thread = await find_thread(request)
    found = await _carry_out(thread, Started, body.episodes)
    response = reply(_of_episodes(found))
    refused = [each for each in found if isinstance(each, ErrorDetail)]
    waits = [each.retry_after for each in refused if each.retry_after is not None]
    if waits:
        response.headers.update(retry_after(min(waits)))
    return response


@route(
    "POST",
    CAMPAIGN + "/acts",
    "The actions of steps of several episodes; each has an outcome of its own",
    takes=ActMany,
    gives={200: ActionOutcomes},
)
async def act_many(request: Request, body: ActMany) -> ActionOutcomes:
    """Ask for actions."""
    thread = await find_thread(request)
    definition = thread.campaign.definition
    found = await _carry_out(
        thread,
        lambda act: ask_action(definition, act.episode, act.step, act.state, act.probabilities),
        body.acts,
    )
    return ActionOutcomes([ActionOutcome(*_reply_or_error(each)) for each in found])


@route(
    "POST",
    CAMPAIGN + "/rewards",
    "Report what actions of several episodes led to; each has an outcome of its own",
    takes=RewardMany,
    gives={200: EpisodeOutcomes},
)
async def reward_many(request: Request, body: RewardMany) -> EpisodeOutcomes:
    """Tell what actions led to."""
    thread = await find_thread(request)
    definition = thread.campaign.definition
    found = await _carry_out(
        thread,
        lambda told: tell_reward(
            definition,
            told.episode,
            told.step,
            told.reward,
            told.next_state,
            told.cost,
            told.amounts,
        ),
        body.rewards,
    )
    return _of_episodes(found)


async def _carry_out(
    thread: CampaignThread, command: Callable[[Asked], Command], asked: Iterable[Asked]
) -> list[Outcome]:
    """What came of each; one that is refused does not touch the others."""
    made: list[asyncio.Future[Reply] | ErrorDetail] = []
    for each in asked:
        try:
            made.append(thread.submit(command(each)))
        except InputError as error:
            made.append(describe(error)[1])
    waiting = [each for each in made if not isinstance(each, ErrorDetail)]
    await asyncio.gather(*waiting, return_exceptions=True)
    return [each if isinstance(each, ErrorDetail) else _outcome(each) for each in made]


def _outcome(done: "asyncio.Future[Reply]") -> Outcome:
    problem = done.exception()
    if isinstance(problem, StorageError):
        raise problem  # of all of them: to be sent again
    if isinstance(problem, Exception):
        return describe(problem)[1]
    found = done.result()
    assert isinstance(found, ActionReply | EpisodeReply)
    return found


def _of_episodes(found: list[Outcome]) -> EpisodeOutcomes:
    return EpisodeOutcomes([EpisodeOutcome(*_reply_or_error(each)) for each in found])


def _reply_or_error(found: Outcome) -> tuple[Any, ErrorDetail | None]:
    return (None, found) if isinstance(found, ErrorDetail) else (found, None)
