"""The routes of forms: `/login` and `/logout`, and `/act/NAME` with the consequences of an act, the act and its result."""

from __future__ import annotations

import redis
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from monitoring.api.access import GuessedTooOften, Scope, audited
from monitoring.api.entrance import FormFields
from monitoring.part import part
from redis_components.connection import explain
from redis_components.errors import TrawlError

from .actions import ACTIONS, Action, Given
from .login import Session, is_foreign, is_local
from .routes import HEADERS, Desk


def login_routes(desk: Desk) -> APIRouter:
    """Show a token, and get a session; and end it."""
    routes = APIRouter()

    def form(request: Request, onward: str, trouble: str, code: int) -> Response:
        session = desk.login.session(request)
        role = desk.role(request)
        return desk.html("login.html", code, title="Log in", role=role, session=session, next=onward, trouble=trouble)

    @routes.get("/login")
    def show(request: Request, next: str = "/", token: str = "") -> Response:
        if token and is_local(request) and not is_foreign(request):  # the link of `trawl up`
            return opened(request, next, token)
        return form(request, next, "", 200)

    @routes.post("/login")
    def enter(request: Request, fields: FormFields) -> Response:
        onward = fields.get("next", ["/"])[-1]
        if is_foreign(request):
            return form(request, onward, "a page of another site sent this form: send it from here", 403)
        return opened(request, onward, fields.get("token", [""])[-1].strip())

    def opened(request: Request, onward: str, token: str) -> Response:
        answer = RedirectResponse(onward if is_own(onward) else "/", 303, headers=HEADERS)
        try:
            is_right = desk.login.enter(token, request, answer)
        except GuessedTooOften as error:
            waits = form(request, onward, str(error), 429)
            waits.headers.update(error.headers)
            return waits
        if not is_right:
            return form(request, onward, "this token opens nothing", 401)
        return answer

    @routes.post("/logout")
    def leave(request: Request, fields: FormFields) -> Response:
        session = desk.login.session(request)
        if session is None or is_foreign(request) or fields.get("word", [""])[-1] != session.leave:
            return form(request, "/", "this form is too old: log out again", 403)
        answer = RedirectResponse("/", 303, headers=HEADERS)
        desk.login.leave(request, answer)
        return answer

    return routes


def is_own(path: str) -> bool:
    """Return True for a path of this page: not `//evil.example`, and nothing that a browser reads as that."""
    return path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()


BY = "the page"


def action_routes(desk: Desk) -> APIRouter:
    """Return the routes of forms and acts; for sessions of the token to act alone."""
    routes, actions = APIRouter(), {**ACTIONS, **part().actions()}

    @routes.get("/act/{name}")
    def show(name: str, request: Request) -> Response:
        action, session = actions.get(name), _acting(desk, request)
        if action is None:
            return desk.message("Not found", f"there is no action {name!r:.50}: {', '.join(actions)}", 404)
        if session is None:
            return _refused(desk, request)
        return _form(desk, session, name, action, dict(request.query_params))

    @routes.post("/act/{name}")
    def act(name: str, request: Request, form: FormFields) -> Response:
        action, session = actions.get(name), _acting(desk, request)
        if session is None or is_foreign(request):
            return desk.message("Not done", "Log in with the token to act, and send the form from this page.", 403)
        if action is None:
            return desk.message("Not found", f"there is no action {name!r:.50}", 404)
        if not session.take(form.get("word", [""])[-1]):
            return desk.message("Not done", "This form was sent before, or is too old: open it again. Nothing was changed.", 409)
        values = {key: found[-1] for key, found in form.items() if key != "word"}
        try:
            given = Given(action.fields, form)
            with audited(desk.client, request, given.words(name), by=BY):
                lines = tuple(action.do(desk.client, given, BY))
        except (TrawlError, redis.RedisError, OSError) as error:
            trouble = str(error) if isinstance(error, TrawlError) else str(explain(error, desk.url))
            return _form(desk, session, name, action, values, trouble=trouble, code=400)
        return desk.html("done.html", role="act", title=f"{action.title}: done", lines=lines)

    return routes


def _acting(desk: Desk, request: Request) -> Session | None:
    session = desk.login.session(request)
    return session if session is not None and session.scope is Scope.ACT else None


def _refused(desk: Desk, request: Request) -> Response:
    if not desk.login.tokens.act:
        text = "Nothing can be changed here: set TRAWL_API_ACT_TOKEN where the exporter runs (openssl rand -hex 24)."
        return desk.message("Not allowed", text, 403)
    if desk.login.session(request) is not None:
        return desk.message("Not allowed", "Your token may only read: log in with that of TRAWL_API_ACT_TOKEN.", 403)
    return desk.to_login(request)


def _form(
    desk: Desk, session: Session, name: str, action: Action, values: dict[str, str], *, trouble: str = "", code: int = 200
) -> Response:
    about = " ".join(values[one.name] for one in action.fields if one.fixed and values.get(one.name))
    if not about and action.fields[0].fixed and not action.fields[0].needed:
        about = "the whole fleet"
    return desk.html(
        "act.html",
        code,
        role="act",
        title=f"{action.title} {about}".strip(),
        name=name,
        action=action,
        values=values,
        trouble=trouble,
        word=session.new_form(),
    )
