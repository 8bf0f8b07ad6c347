"""`/login` and `/logout`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from monitoring.api.body import FormFields
from monitoring.api.guesses import GuessedTooOften

from .login import is_foreign
from .routes import HEADERS, Desk


def login_routes(desk: Desk) -> APIRouter:
    """Show a token, and get a session; and end it."""
    routes = APIRouter()

    def form(request: Request, onward: str, trouble: str, code: int) -> Response:
        session = desk.login.session(request)
        role = desk.role(request)
        return desk.html("login.html", code, title="Log in", role=role, session=session, next=onward, trouble=trouble)

    @routes.get("/login")
    def show(request: Request, next: str = "/") -> Response:
        return form(request, next, "", 200)

    @routes.post("/login")
    def enter(request: Request, fields: FormFields) -> Response:
        onward = fields.get("next", ["/"])[-1]
        if is_foreign(request):
            return form(request, onward, "a page of another site sent this form: send it from here", 403)
        answer = RedirectResponse(onward if is_own(onward) else "/", 303, headers=HEADERS)
        try:
            is_right = desk.login.enter(fields.get("token", [""])[-1].strip(), request, answer)
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
