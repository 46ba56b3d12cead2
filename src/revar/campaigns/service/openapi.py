"""The OpenAPI document, made from the routes and the records that they use."""

import re
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from revar.campaigns.commands import CAMPAIGN_ID, EPISODE_ID
from revar.campaigns.definition import NAME
from revar.campaigns.export import FORMATS
from revar.campaigns.service.api import ROUTES, ApiRoute
from revar.campaigns.service.events import LAST_POSITION
from revar.campaigns.service.messages import CAMPAIGN_HEADER, ErrorMessage
from revar.model.validation import LARGEST_CONFIDENCE

REFERENCE = "#/components/schemas/{name}"
PARAMETERS = {
    "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    "episode": {"type": "string", "pattern": f"^{EPISODE_ID.pattern}$"},
}
CAMPAIGN_SCHEMA = {"type": "string", "pattern": f"^{CAMPAIGN_ID.pattern}$"}
CONFIDENCE = (
    "confidence",
    {"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_CONFIDENCE, "default": 0.95},
)
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "/estimate": CONFIDENCE,
    "/ranking": CONFIDENCE,
    "/events": ("after", {"type": "integer", "minimum": 0, "maximum": LAST_POSITION, "default": 0}),
    "/data": ("format", {"type": "string", "enum": list(FORMATS), "default": FORMATS[0]}),
}


@cache
def openapi_document() -> dict[str, Any]:
    """The document as it is served at /api/openapi.json."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    records = [record for route in ROUTES for record in _records(route)]
    _, components = msgspec.json.schema_components([*records, ErrorMessage], ref_template=REFERENCE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "revar campaigns",
            "version": version("revar-rl"),
            "description": "Live collection: ask for actions, tell what they led to, and read the "
            "value of the target policy, or compare several. States are any JSON value but null.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.endpoint.__name__,
        "summary": route.summary,
        "responses": _responses(route),
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    for ending, (name, schema) in QUERIES.items():
        if route.path.endswith(ending) and route.method == "GET":
            parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    if "{name}" in route.path:
        parameters.append(
            {"name": CAMPAIGN_HEADER, "in": "header", "required": False, "schema": CAMPAIGN_SCHEMA}
        )
    if parameters:
        operation["parameters"] = parameters
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.takes)}
    return operation


def _responses(route: ApiRoute) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, record in (route.gives or {}).items():
        responses[str(status)] = {"description": route.summary, "content": _json(record)}
    if route.gives is None:
        text = {"schema": {"type": "string"}}
        responses["200"] = {
            "description": route.summary,
            "content": {"application/x-ndjson": text, "text/csv": text},
        }
    errors = {401: "No valid token", 429: "Too many wrong tokens"}
    if route.method != "GET":
        errors[403] = "A token that allows to read alone"
    if "{name}" in route.path:
        errors[404] = "No such campaign or episode"
    if "{name}" in route.path or route.takes is not None:
        errors[422] = "A field that cannot be used"
    if "{name}" in route.path or route.conflicts:
        errors[409] = "Not possible as things stand"
    if route.takes is not None:
        errors |= {400: "Not JSON", 413: "Too large", 415: "Not application/json"}
    errors[503] = "The storage cannot be reached"
    for status, meaning in sorted(errors.items()):
        responses[str(status)] = {"description": meaning, "content": _json(ErrorMessage)}
    return responses


def _records(route: ApiRoute) -> list[Any]:
    given = list((route.gives or {}).values())
    return given if route.takes is None else [route.takes, *given]


def _json(record: Any) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=record.__name__)}}}
