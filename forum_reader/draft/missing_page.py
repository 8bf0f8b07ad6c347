"""The sign by which a site that answers with status 200 shows that a thread does not exist, learned from its answer for one that
never did: a text of that page which no other page has, and which means just that, or the list to which it leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

import msgspec

from forum_reader.definition.pages import PageKind
from forum_reader.errors import FetchFailed, PageGone, SiteError
from forum_reader.page.soft_block import verdict
from forum_reader.reading.page_records import Asked, IndexPage, ListPage
from forum_reader.reading.parse_body import markup_root

from .draft_file import Draft, Preview, PreviewedThread, preview_of, read_strictly, site_of_draft
from .element_selectors import words_of

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Get, TextResponse

_ENDS = re.compile(r"""[\d"\\]+""")  # what a sign has around it: the number of the thread, the quotes of a script
_NUMBER = re.compile(r"\d+")
_MOST_DIGITS = 9  # more overflow some software
_MOST_CHARACTERS = 300
_MISSING = re.compile(
    r"not? (?:be |been )?found|n[o'’]t exist|no such|no longer|never existed|invalid [\w ]{1,20}specified"
    r"|(?:been|was) (?:deleted|removed)|nicht (?:mehr )?(?:gefunden|vorhanden|existiert)|existiert? nicht|gibt es nicht|gelöscht"
    r"|existe (?:pas|plus)|introuvable|pas (?:été )?trouvé|supprimé|no existe|no (?:se |ha |sido |pud[oe] )*encontr|eliminad"
    r"|n[ãa]o (?:existe|(?:foi )?encontrad)|removid|non esiste|non (?:è stat[ao] )?trovat|inesistente"
    r"|bestaat niet|niet (?:gevonden|bestaan)|nie (?:istnieje|znaleziono|został[ao]? (?:znalezion|odnalezion))"
    r"|neexistuje|nenalezen|nebyl[ao]? nalezen|nenašl[ao]|не существует|не (?:был[ао]? )?найден|удал[её]н|не існує|не знайдено"
    r"|не съществува|finns inte|hittades inte|existerar inte|(?:findes|finnes|eksisterer) ikke|ikke (?:fundet|funnet)"
    r"|ei (?:ole olemassa|löyt)|nem (?:létezik|található)|nu (?:există|a fost găsit)|bulunamadı|mevcut değil"
    r"|δεν (?:υπάρχει|βρέθηκε)|不存在|找不到|未找到|[没沒]有找到|已被?[删刪]除|存在し(?:ません|ない)|見つかりません|削除され"
    r"|존재하지 않|찾을 수 없|삭제되|không (?:tồn tại|tìm thấy)|tidak (?:ada|ditemukan)|ไม่พบ|ไม่มีอยู่"
    r"|غير موجود|لم يتم العثور|وجود ندارد|یافت نشد|پیدا نشد|לא (?:נמצא|קיי?ם)",
    re.IGNORECASE,
)


async def with_gone(draft: Draft, shown: Preview, get: Get) -> Draft:
    """Return the draft with the sign of a thread that does not exist, for one request; the draft as it is where the site answers
    with another status, its profile knows the sign, or the answer shows none.
    """
    site = site_of_draft(draft)
    seen = [thread for thread in shown.threads if thread.problem is None and thread.fault is None]
    url = next((url for thread in seen if (url := _never(thread)) is not None), None)
    if url is None or site.pages.comments.answer != "html" or site.pages.thread is not None:
        return draft
    try:
        response = await get(url)
        if response.status != 200 or verdict(response) is not None:
            return draft
        others = [await get(thread.url) for thread in seen]
    except FetchFailed:
        return draft
    if _is_gone(site, response):
        return draft
    for sign in _signs(response, others) if _same(response.url, url) else _places(site, draft, response):
        changed = _with(draft, sign)
        if _is_gone(site_of_draft(changed), response) and (await preview_of(changed, get)).threads == shown.threads:
            return changed
    if draft.wrapper:
        draft.wrapper.missing.append(
            f"pages.comments.gone: {url} is answered with status 200, with nothing that shows it is missing"
        )
    return draft


def _never(thread: PreviewedThread) -> str | None:
    """Return the address of a thread that does not exist; None where an address has no number of the thread."""
    none = _NUMBER.sub(lambda found: "9" * max(len(found[0]), min(len(found[0]) + 3, _MOST_DIGITS)), thread.id)
    before, own, after = thread.url.rpartition(thread.id)
    return f"{before}{none}{after}" if own and none != thread.id else None


def _same(one: str, other: str) -> bool:
    return urldefrag(one).url == urldefrag(other).url


def _is_gone(site: Site, response: TextResponse) -> bool:
    try:
        read_strictly(site, response, Asked(kind="comments", thread="0", url=response.url))
    except PageGone:
        return True
    except SiteError:
        pass
    return False


def _with(draft: Draft, sign: dict[str, str]) -> Draft:
    if draft.wrapper is None:
        return msgspec.structs.replace(draft, gone=sign)
    pages = draft.wrapper.pages
    wrapper = replace(draft.wrapper, pages=pages | {"comments": pages["comments"] | sign})
    return msgspec.structs.replace(draft, wrapper=wrapper)


def _places(site: Site, draft: Draft, page: TextResponse) -> Iterator[dict[str, str]]:
    """Yield the address of the page that was sent in place of the thread's, where it is a list of threads or an index."""
    base, forum = f"{site.base_url}".rstrip("/"), draft.wrapper.tried if draft.wrapper else draft.forums[0].id
    kinds: tuple[PageKind, ...] = ("list", "index") if site.pages.index is not None else ("list",)
    for kind in kinds:
        try:
            found = read_strictly(site, page, Asked(kind=kind, forum=forum))
        except SiteError:
            continue
        rows = found.threads if isinstance(found, ListPage) else found.forums if isinstance(found, IndexPage) else ()
        if rows and page.url.startswith(f"{base}/"):
            yield {"gone_at": urldefrag(page.url).url.removeprefix(base)}


def _signs(page: TextResponse, others: list[TextResponse]) -> Iterator[dict[str, str]]:
    """Yield a selector for each text that means that something is missing, and is on none of the other pages."""
    known = [words_of(markup_root(one)) for one in others]
    for text in markup_root(page).xpath("//text()"):
        holder = text.getparent().getparent() if text.is_tail else text.getparent()
        for part in _ENDS.split(" ".join(text.split())):
            piece = part.strip()
            if len(piece) <= _MOST_CHARACTERS and _MISSING.search(piece) and not any(piece in one for one in known):
                yield {"gone": f'//{holder.tag}[contains(normalize-space(), "{piece}")]'}
