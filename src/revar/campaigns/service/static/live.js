// Keeps a page up to date: its main part is fetched again every two seconds while it is looked at.
"use strict";

const EVERY = 2000;
const main = document.getElementById("main");
const pulse = document.getElementById("pulse");

function show(live) {
  pulse.hidden = false;
  pulse.classList.toggle("lost", !live);
  pulse.querySelector("b").textContent = live ? "live" : "not connected";
}

// Replaces the children that differ, so that what a person has opened or selected stays.
function replace(fresh) {
  const now = Array.from(main.children);
  const next = Array.from(fresh.children);
  if (now.length !== next.length) {
    main.replaceChildren(...next);
    return;
  }
  next.forEach((element, place) => {
    const told = now[place].querySelector("[role=alert]");
    const alert = element.querySelector("[role=alert]");
    if (told && alert) alert.textContent = told.textContent; // until something else is sent
    const typing = now[place].contains(document.activeElement) && document.activeElement.value;
    if (now[place].tagName !== "DETAILS" && !typing && now[place].outerHTML !== element.outerHTML) {
      now[place].replaceWith(element);
    }
  });
}

let leaving = false; // what this page shows is about to go

async function refresh() {
  if (leaving || document.hidden || String(window.getSelection())) return;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected || response.status === 401) {
      location.reload();
      return;
    }
    if (!response.ok) throw new Error(String(response.status));
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    replace(page.getElementById("main"));
    show(true);
  } catch {
    show(false);
  }
}

if (main.hasAttribute("data-live")) {
  show(true);
  setInterval(refresh, EVERY);
  document.addEventListener("visibilitychange", refresh);
}

// Buttons and forms that say themselves what they send, and where to.
async function send(element, body) {
  const place = element.closest("section") || main;
  const alert = place.querySelector("[role=alert]");
  if (element.dataset.sure && !window.confirm(element.dataset.sure)) return;
  if (alert) alert.textContent = "";
  let problem = `The service did not answer.${element.dataset.id ? " Sent again, it counts once." : ""}`;
  leaving = Boolean(element.dataset.then);
  try {
    const options = { method: element.dataset.send };
    if (options.method === "POST") {
      options.headers = { "Content-Type": "application/json" };
      options.body = JSON.stringify(body);
    }
    const response = await fetch(element.dataset.to, options);
    if (response.ok) {
      if (element.matches("form")) restart(element, body);
      if (element.dataset.then) location.href = element.dataset.then;
      else await refresh();
      return;
    }
    problem = (await response.json()).error.message;
  } catch {
    show(false);
  }
  leaving = false;
  if (alert) alert.textContent = problem;
  else window.alert(problem);
}

main.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-send]");
  if (button) send(button, {});
});

// The ids of what forms have sent, until it is answered: sent again, by a second click or because
// the answer was lost, it counts once.
const ids = new Map();

function restart(form, body) {
  for (const [asked, id] of ids) if (id === body[form.dataset.id]) ids.delete(asked);
  form.reset();
}

function idOf(asked) {
  if (!ids.has(asked)) {
    const numbers = Array.from(crypto.getRandomValues(new Uint8Array(16)));
    ids.set(asked, numbers.map((number) => number.toString(16).padStart(2, "0")).join(""));
  }
  return ids.get(asked);
}

main.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-send]")) return;
  event.preventDefault();
  const fields = Array.from(new FormData(form));
  const body = Object.fromEntries(fields.map(([name, text]) => [name, Number(text)]));
  const asked = `${form.dataset.to} ${JSON.stringify(body)}`;
  send(form, { ...body, [form.dataset.id]: idOf(asked) });
});

function limitsOf(field) {
  const limits = {};
  const least = field("min_return");
  if (least) limits.min_return = Number.isNaN(Number(least)) ? least : Number(least);
  if (field("max_ratio")) limits.max_ratio = Number(field("max_ratio"));
  for (const name of ["forbidden", "max_sums"]) {
    if (field(name)) limits[name] = JSON.parse(field(name));
  }
  return limits;
}

const form = document.getElementById("create");
if (form) {
  const error = document.getElementById("error");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.textContent = "";
    const field = (name) => form.elements[name].value.trim();
    const asked = {
      name: field("name"),
      horizon: Number(field("horizon")),
      discount: Number(field("discount")),
      lease: Number(field("lease")),
      strategy: field("strategy"),
    };
    asked[field("unit") === "cost" ? "budget" : field("unit")] = Number(field("amount"));
    try {
      const limits = limitsOf(field);
      if (Object.keys(limits).length) asked.limits = limits;
    } catch (problem) {
      error.textContent = `The limits are not JSON: ${problem.message}`;
      return;
    }
    if (field("source") === "sent") {
      asked.actions = Number(field("actions"));
      if (field("names")) asked.policies = field("names").split(",").map((name) => name.trim());
    } else {
      try {
        const table = JSON.parse(field("policy"));
        asked[Array.isArray(table) ? "policy" : "policies"] = table;
      } catch (problem) {
        error.textContent = `The policy is not JSON: ${problem.message}`;
        return;
      }
    }
    if (field("half_width")) asked.half_width = Number(field("half_width"));
    if (asked.policies) asked.question = field("question");
    // As it was written: a number of JavaScript has 53 bits.
    const seed = /^[0-9]+$/.test(field("seed")) ? `,"seed":${BigInt(field("seed"))}` : "";
    try {
      const response = await fetch("/api/campaigns", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(asked).replace(/}$/, `${seed}}`),
      });
      const reply = await response.json();
      if (response.ok) location.href = `/campaigns/${encodeURIComponent(reply.name)}`;
      else error.textContent = reply.error.message;
    } catch {
      error.textContent = "The service did not answer.";
    }
  });
}
