"""Menus, sidebars, the head and the foot of a page: the frame around its content."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .page_tree import PageTree, Range

_MOST_OF_PAGE = 0.5  # of the text outside of links, that a menu or a sidebar has
_FRAME_TAGS = frozenset({"nav", "footer", "aside"})
_FRAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|foot(?:er)?|side-?bar|breadcrumbs?|widget)(?:$|[\s_-])", re.IGNORECASE
)


def is_framed(tree: PageTree, i: int) -> bool:
    """Return True if an element stands in a menu, a sidebar, the head or the foot of the page."""
    most = _MOST_OF_PAGE * (tree.chars[-1] - tree.link_chars[-1])
    while i > 0:
        if tree.tag[i] in _FRAME_TAGS:
            return True
        if tree.written_in(i) <= most:
            attributes = tree.attributes[i]
            names = f"{attributes.get('class', '')} {attributes.get('id', '')} {attributes.get('role', '')}" if attributes else ""
            if tree.tag[i] == "header" or (names and _FRAME.search(names)):
                return True
        i = tree.parent[i]
    return False


def around(tree: PageTree, members: Sequence[int]) -> int:
    """Return the innermost element that holds all members."""
    i = tree.parent[members[0]]
    while i > 0 and tree.end[i] <= members[-1]:
        i = tree.parent[i]
    return i


_TYPED = frozenset({"text", "password", "email", "tel", "number", "url"})
_MOST_FORMS = 6
_FORMS = 0.25  # least share of candidate posts with fields on the page of a form
_ENTRY = re.compile(
    r"log-?\s?in|log-?\s?on|sign[-_\s]?(?:in|up|on)(?![a-z])|regist|password|passwor[td]|account|auth|anmeld|einlogg|konto|"
    r"mot[-_ ]de[-_ ]passe|connexion|inscri|contraseña|senha|iniciar sesi|entrar|wachtwoord|inlogg|logga in|lösenord|adgangskode|"
    r"hasł|zaloguj|logowan|přihl|prihl|hesl|belépés|jelsz|giriş|şifre|вход|войти|авториз|регистр|парол|"
    r"ログイン|登録|パスワード|登录|登錄|登入|注册|註冊|로그인|תחבר|دخول|تسجيل",
    re.IGNORECASE,
)
"""Titles and addresses of login and registration pages."""


def typed_fields(tree: PageTree) -> list[int]:
    """Return the elements for typed text, in the order of the page."""
    return [i for i, tag in enumerate(tree.tag) if tag == "input" and _type_of(tree, i) in _TYPED]


def are_forms(tree: PageTree, blocks: Sequence[Range]) -> bool:
    """Return True if candidate posts are parts of a form page: a login, a registration, a search."""
    fields = typed_fields(tree) if len(blocks) <= _MOST_FORMS else []  # answers may have a form each
    return bool(fields) and sum(any(start <= i < end for i in fields) for start, end in blocks) >= _FORMS * len(blocks)


def asks_for_password(tree: PageTree) -> bool:
    """Return True if a password field stands outside of menus, and of the head and the foot of the page."""
    return any(tag == "input" and _type_of(tree, i) == "password" and not is_framed(tree, i) for i, tag in enumerate(tree.tag))


def is_entry(tree: PageTree, title: str | None, address: str) -> bool:
    """Return True if a page is a login or a registration: its title or address matches, and it has a password field."""
    return bool(_ENTRY.search(title or "") or _ENTRY.search(address)) and asks_for_password(tree)


def _type_of(tree: PageTree, i: int) -> str:
    return tree.attributes[i].get("type", "text").strip().lower() or "text"
