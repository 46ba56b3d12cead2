"""The dashboard in a real browser, against a service as users run it."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from revar.campaigns import Campaign
from revar.campaigns.text import amount
from tests.browser import Browser
from tests.campaigns.serving import Service, call, serving
from tests.campaigns.worlds import World, policy_of

TOKEN = "a-token-for-the-dashboard"
WIDTHS = ((400, 390), (800, 768), (1200, 1280))  # pictures are taken of the first of each pair


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a campaign that has run for a while."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('dashboard')}/campaigns.db"
    world = World.named("gridworld")
    campaign = Campaign.create(
        storage, "grid", policy=world.policy, horizon=world.horizon, episodes=400, seed=1
    )
    for episode in campaign.episodes():
        world.play(episode)
        if episode.number == 120:
            break
    campaign.start_episode().act(world.first(121))
    variants = {f"variant {k}": policy_of([0.05 * k, 0.5 - 0.05 * k] * 2) for k in range(1, 7)}
    for name, policies, episodes in (
        ("versions", {"old": variants["variant 1"], "new": variants["variant 4"]}, 60),
        ("variants", {**variants, "a name that is rather long for a table": world.policy}, 40),
        ("begun", variants, 0),
    ):
        compared = Campaign.create(
            storage, name, policies=policies, horizon=world.horizon, episodes=400, seed=1
        )
        for _ in range(episodes):
            world.play(compared.start_episode())
    limited = Campaign.create(
        storage,
        "limited",
        policy=world.policy,
        horizon=world.horizon,
        budget=900.0,
        limits={
            "min_return": "90%",
            "max_ratio": 3,
            "max_sums": {"unsafe": 5.0, "a sum with a name that is rather long for a table": 20},
        },
        seed=1,
    )
    for episode in limited.episodes():
        world.play_paid(episode, limited.definition.limited_sums)
        if episode.number == 60:
            break
    stepwise = Campaign.create(
        storage, "stepwise", actions=3, horizon=4, steps=100, seed=1, limits={"forbidden": [2]}
    )
    stepwise.start_episode().act("home", [0.5, 0.5, 0.0])
    with serving(storage) as running:
        yield running


def picture(browser: Browser, name: str) -> None:
    """Keep a picture where somebody wants to look at them."""
    if os.environ.get("REVAR_PICTURES"):
        browser.picture(Path(os.environ["REVAR_PICTURES"]) / f"{name}.png")


def test_create_watch_and_download(service: Service, browser: Browser) -> None:
    browser.open(service.address + "/")
    browser.find("a[href='/new']").click()
    browser.find("input[name=name]").send_keys("ads")
    for name, value in (("amount", "30"), ("horizon", "1"), ("seed", "3")):
        field = browser.find(f"input[name={name}]")
        field.clear()
        field.send_keys(value)
    browser.find("input[value=table]").click()
    table = json.dumps([{"state": "home", "probabilities": [0.5, 0.5]}])
    browser.find("textarea[name=policy]").send_keys(table)
    browser.find("form#create button").click()
    browser.until(lambda: browser.driver.current_url.endswith("/campaigns/ads"))
    assert browser.text("#finished") == "0"
    # It progresses while it is watched, without a reload by hand.
    browser.driver.execute_script("window.stayed = true")
    for number in range(30):
        path = "/api/campaigns/ads/episodes"
        episode = call(service.address, path, {})[1]["episode"]
        action = call(service.address, f"{path}/{episode}/act", {"step": 0, "state": "home"})[1]
        told = {"step": 0, "reward": action["action"] + 0.1 * (number % 5), "next_state": None}
        call(service.address, f"{path}/{episode}/reward", told)
    browser.until(lambda: browser.text("#finished") == "30")
    assert browser.driver.execute_script("return window.stayed") is True
    assert "complete" in browser.text("h1")
    found = call(service.address, "/api/campaigns/ads/estimate")[1]["value"]
    assert found == pytest.approx(0.7, abs=0.1)
    assert browser.text("#value").startswith(f"{found:.4g} ±")
    assert len(browser.all("#chart .dot")) > 5
    browser.find("#download").click()
    file = browser.downloads / "ads.jsonl"
    browser.until(file.exists)
    lines = file.read_text().splitlines()
    assert len(lines) == 30
    assert json.loads(lines[0])["steps"][0]["state"] == "home"


def test_what_a_campaign_shows(service: Service, browser: Browser) -> None:
    browser.open(service.address + "/campaigns/grid")
    text = browser.text("main")
    for heading in (
        "Value of the target policy",
        "Episodes",
        "Steps a second",
        "On-policy would have given",
        "Estimate and 95% interval over episodes",
        "Behavior against target policy",
        "What drives the remaining variance",
        "Open leases",
    ):
        assert heading in text
    assert len(browser.all(".policy tbody tr")) == 12
    assert len(browser.all(".share")) == 8
    assert "121" in text  # the number of the open episode
    assert "last event" in browser.text("#silence")
    browser.find(".switch a[href='?by=time']").click()
    browser.until(lambda: "interval over time" in browser.text("main"))
    assert browser.text("#chart .axis") == "time since the first event"
    assert len(browser.all("#chart .dot")) > 5
    bars = browser.all(".policy .behavior")
    assert max(bar.size["height"] for bar in bars) > 20


def test_what_a_comparison_shows(service: Service, browser: Browser) -> None:
    browser.open(service.address + "/campaigns/versions")
    text = browser.text("main")
    for heading in ("Who leads", "Policies, the best first", "2 policies, question “best”"):
        assert heading in text
    leader = browser.text("#leader")
    other = ({"old", "new"} - {leader}).pop()
    assert browser.text("#verdict").startswith(f"{leader} ")
    assert f"Lead of {leader} over {other}, with its interval, over episodes" in text
    rows = [row.text for row in browser.all("#comparison tbody tr")]
    assert [row.split()[0] for row in rows] == [leader, other]
    assert len(browser.all(".whiskers .point")) == 1
    assert len(browser.all("#chart .line")) == len(browser.all("#chart .band")) == 1
    browser.open(service.address + "/campaigns/variants?by=time")
    assert len(browser.all("#comparison tbody tr")) == 7
    assert (len(browser.all("#chart .line")), len(browser.all("#chart .band"))) == (5, 1)
    browser.open(service.address + "/campaigns/begun")
    assert "no step is complete yet" in browser.text("main")
    browser.open(service.address + "/")
    assert "leads, not decided yet" in browser.text("main")


def test_a_campaign_is_managed(service: Service, browser: Browser) -> None:
    """A lease is released, the budget extended, the campaign archived and removed."""
    large = 2**62 + 1  # more than a number of JavaScript can hold
    browser.open(service.address + "/new")
    for name, value in (("name", "managed"), ("seed", str(large))):
        browser.find(f"input[name={name}]").send_keys(value)
    amount_field = browser.find("input[name=amount]")
    amount_field.clear()
    amount_field.send_keys("1")
    browser.find("form#create button").click()
    browser.until(lambda: browser.driver.current_url.endswith("/campaigns/managed"))
    status = call(service.address, "/api/campaigns/managed")[1]
    assert (status["seed"], status["budget"]) == (large, 1)

    def press(selector: str, sure: bool = True) -> None:
        browser.find(selector).click()
        if sure:
            browser.driver.switch_to.alert.accept()

    call(service.address, "/api/campaigns/managed/episodes", {"episode": "left"})
    press("button[data-to$='/left/abandon']")
    browser.until(lambda: "No episode is open" in browser.text("main"))
    browser.find("#manage input").send_keys("9")
    press("#manage form button", sure=False)
    browser.until(lambda: "of 10" in browser.text("main"))
    press("#manage button[data-to$=close]")
    browser.until(lambda: "closed" in browser.text("h1"))
    press("#manage button[data-to$=reopen]", sure=False)
    browser.until(lambda: "waiting" in browser.text("h1"))
    press("#manage button[data-to$=archive]")
    browser.until(lambda: "archived" in browser.text("h1"))
    press("#manage button[data-send=DELETE]")
    browser.until(lambda: browser.driver.current_url == service.address + "/")
    assert call(service.address, "/api/campaigns/managed")[0] == 404


# What happens to answers to the page: nothing, or they come later than a second click.
FETCHES = {
    "quick": "",
    "slow": "await new Promise((done) => setTimeout(done, 400));",
}


@pytest.mark.parametrize("answers", FETCHES)
def test_an_extension_that_is_sent_twice_counts_once(
    service: Service, browser: Browser, answers: str
) -> None:
    name = f"extended-{answers}"
    asked = {"name": name, "actions": 2, "horizon": 1, "episodes": 1}
    assert call(service.address, "/api/campaigns", asked)[0] == 201
    browser.open(f"{service.address}/campaigns/{name}")
    browser.driver.execute_script(
        "const send = window.fetch; window.sent = 0;"
        "window.fetch = async (address, options) => {"
        "  const posts = options && options.method === 'POST';"
        "  if (posts) window.sent += 1;"
        "  const answer = await send(address, options);"
        f"  if (posts) {{ {FETCHES[answers]} }}"
        "  return answer; }"
    )

    def extend() -> None:
        browser.find("#manage input").send_keys("9")
        button = "document.querySelector('#manage form button')"
        browser.driver.execute_script(f"{button}.click(); {button}.click();")

    extend()
    browser.until(lambda: "of 10" in browser.text("main"))
    browser.until(lambda: browser.find("#manage input").get_attribute("value") == "")
    assert browser.driver.execute_script("return window.sent") == 2
    assert call(service.address, f"/api/campaigns/{name}")[1]["budget"] == 10
    extend()  # on purpose
    browser.until(lambda: "of 19" in browser.text("main"))


def test_an_extension_whose_answer_was_lost_counts_once(service: Service, browser: Browser) -> None:
    """The page says so, shows what has come of it, and may send it again."""
    asked = {"name": "lost", "actions": 2, "horizon": 1, "episodes": 1}
    assert call(service.address, "/api/campaigns", asked)[0] == 201
    browser.open(f"{service.address}/campaigns/lost")
    browser.driver.execute_script(
        "const send = window.fetch; let posts = 0;"
        "window.fetch = async (address, options) => {"
        "  const answer = await send(address, options);"
        "  if (options && options.method === 'POST' && ++posts === 1) throw new TypeError('lost');"
        "  return answer; }"
    )

    def extend(amount: str) -> None:
        field = browser.find("#manage input")
        field.clear()
        field.send_keys(amount)
        browser.find("#manage form button").click()

    extend("9")
    browser.until(lambda: "of 10" in browser.text("main"))  # the page was renewed meanwhile
    assert browser.text("#manage [role=alert]").endswith("Sent again, it counts once.")
    extend("9")
    browser.until(lambda: browser.find("#manage input").get_attribute("value") == "")
    assert "Sent again" not in browser.text("main")
    assert call(service.address, "/api/campaigns/lost")[1]["budget"] == 10
    extend("9")  # on purpose
    browser.until(lambda: "of 19" in browser.text("main"))


def test_a_comparison_is_created_with_the_form(service: Service, browser: Browser) -> None:
    for name, names in (("by-name", "old, new"), ("by-table", "")):
        browser.open(service.address + "/new")
        browser.find("input[name=name]").send_keys(name)
        if names:
            browser.find("input[name=names]").send_keys(names)
        else:
            browser.find("input[value=table]").click()
            rows = [{"state": "home", "probabilities": [0.5, 0.5]}]
            tables = json.dumps({"old": rows, "new": rows})
            browser.find("textarea[name=policy]").send_keys(tables)
        browser.find("form#create button").click()
        browser.until(lambda name=name: browser.driver.current_url.endswith(f"/campaigns/{name}"))
        found = call(service.address, f"/api/campaigns/{name}")[1]
        assert (found["policies"], found["question"]) == (["old", "new"], "best")


def test_what_was_spent_and_how_limits_are_kept(service: Service, browser: Browser) -> None:
    status = call(service.address, "/api/campaigns/limited")[1]
    browser.open(service.address + "/campaigns/limited")
    assert browser.text("#used") == amount(status["used"])
    assert f"{status['episodes']} episodes · {status['steps']} steps" in browser.text("#left")
    limits = browser.text("#limits")
    floor, unsafe, _ = status["realised"]
    for limit, bound in ((floor, floor["least"]), (unsafe, unsafe["most"])):
        assert f"{limit['mean']:.4g} ± {limit['standard_error']:.2g}" in limits
        assert f"{bound:.4g}" in limits
    assert "90% of the value" in limits
    left = [floor["mean"] - floor["least"], unsafe["most"] - unsafe["mean"]]
    assert [cell.text for cell in browser.all("#limits td.left")][:2] == [
        f"{each:.4g}" for each in left
    ]
    # What others would need, in the unit of the budget.
    for place in ("#on-policy", "#mean-return"):
        assert re.search(r"need a cost of [\d,.]+, .* (as much|more|less)", browser.text(place))
    assert len(browser.all("#limits .chip.running")) == 3
    assert "No action is taken more than 3 times as often" in limits
    assert browser.text("main").count("cost") >= 1
    browser.open(service.address + "/campaigns/stepwise")
    assert "Never: action 2" in browser.text("#limits")
    assert "100 left" in browser.text("#left")
    browser.open(service.address + "/")
    assert "0 of 100 steps" in browser.text("main")


def test_a_campaign_with_limits_is_created_with_the_form(
    service: Service, browser: Browser
) -> None:
    browser.open(service.address + "/new")
    for name, value in (
        ("name", "with-limits"),
        ("min_return", "95%"),
        ("max_ratio", "3"),
        ("forbidden", '[["cart", 1]]'),
        ("max_sums", '{"unsafe": 0.1'),
    ):
        browser.find(f"input[name={name}]").send_keys(value)
    browser.find("select[name=unit]").send_keys("cost")
    browser.find("form#create button").click()
    browser.until(lambda: "The limits are not JSON" in browser.text("#error"))
    browser.find("input[name=max_sums]").send_keys("}")
    browser.find("form#create button").click()
    browser.until(lambda: browser.driver.current_url.endswith("/campaigns/with-limits"))
    found = call(service.address, "/api/campaigns/with-limits")[1]
    assert (found["budget"], found["unit"]) == (1000, "cost")
    assert found["limits"] == {
        **{"confidence": 0.9, "forbidden": [["cart", 1]], "max_ratio": 3, "min_return": "95%"},
        "max_sums": {"unsafe": 0.1},
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "other"), WIDTHS)
@pytest.mark.parametrize(
    "page",
    [
        *("/", "/new", "/campaigns/grid", "/campaigns/grid?by=time", "/campaigns/none"),
        *("/campaigns/versions", "/campaigns/variants", "/campaigns/begun"),
        *("/campaigns/limited", "/campaigns/stepwise"),
    ],
)
def test_every_width_and_scheme(
    service: Service, browser: Browser, page: str, width: int, other: int, dark: bool
) -> None:
    browser.open(service.address + page, width=width, dark=dark)
    name = page.strip("/").replace("/", "-") or "overview"
    picture(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
    for shown in (width, other):
        browser.resize(shown)
        assert browser.overflow() <= 0
        assert cut_off(browser) == []
    background, ink = browser.driver.execute_script(
        "const of = (e) => getComputedStyle(e);"
        "return [of(document.body).backgroundColor, of(document.body).color]"
    )
    assert (brightness(background) < brightness(ink)) == dark
    assert abs(brightness(background) - brightness(ink)) > 150  # can be read
    missing = page.endswith("none")  # the browser notes that a page was not found
    assert [told for told in browser.problems() if not (missing and "404" in told)] == []


def cut_off(browser: Browser) -> list[str]:
    """What reaches beyond the right edge of the page, or of the card that it is in."""
    found: list[str] = browser.driver.execute_script(
        "const right = e => e.getBoundingClientRect().right;"
        "const page = document.querySelector('main');"
        "const edge = e => right(e.parentElement.closest('.card') || page);"
        "return [...document.querySelectorAll('main *')].filter("
        "  e => right(e) > edge(e) + 1 && !e.closest('pre')"
        ").map(e => e.outerHTML.slice(0, 80))"
    )
    return found


def brightness(color: str) -> float:
    """Of rgb(r, g, b), from 0 to 255."""
    return sum(float(part) for part in color.partition("(")[2].rstrip(")").split(",")[:3]) / 3


def test_a_form_that_is_refused_says_why(service: Service, browser: Browser) -> None:
    browser.open(service.address + "/new")
    browser.find("input[name=name]").send_keys("refused")
    browser.find("input[value=table]").click()
    policy = browser.find("textarea[name=policy]")
    policy.send_keys("{")
    browser.find("form#create button").click()
    browser.until(lambda: "not JSON" in browser.text("#error"))
    policy.clear()
    policy.send_keys('[{"state": 1, "probabilities": [0.5, 0.4]}]')
    browser.find("form#create button").click()
    browser.until(lambda: "sum to 0.9" in browser.text("#error"))
    (told,) = browser.problems()  # the browser notes the refusal itself
    assert "422" in told


def test_a_service_that_goes_away_is_noticed(tmp_path: Path, browser: Browser) -> None:
    with serving(f"sqlite:///{tmp_path}/campaigns.db") as running:
        browser.open(running.address + "/")
        browser.until(lambda: browser.text("#pulse") == "live")
        running.stop()
        browser.until(lambda: browser.text("#pulse") == "not connected")
    browser.open("about:blank")
    assert all("ERR_CONNECTION_REFUSED" in problem for problem in browser.problems())


def test_the_dashboard_asks_for_a_token(tmp_path: Path, browser: Browser) -> None:
    with serving(f"sqlite:///{tmp_path}/campaigns.db", token=TOKEN) as running:
        browser.open(running.address + "/new", width=390, dark=True)
        assert browser.driver.current_url.endswith("/login")
        picture(browser, "login-390-dark")
        browser.find("input[name=token]").send_keys(TOKEN)
        browser.find("main button").click()
        browser.until(lambda: "No campaign yet" in browser.text("main"))
        picture(browser, "empty-390-dark")
        browser.find("header button").click()
        browser.until(lambda: browser.driver.current_url.endswith("/login"))
        browser.open(running.address + "/")
        assert browser.driver.current_url.endswith("/login")
