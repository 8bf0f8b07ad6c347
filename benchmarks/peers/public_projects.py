"""Public projects on scrapy-redis, by scrapy-redis and, after the guide's one command, by Trawl: pages and items compared.

    python -m benchmarks.peers.public_projects --list
    python -m benchmarks.peers.public_projects FOLDER [--packages FOLDER] [--only NAME ...]

It fetches nothing: FOLDER has a clone of each project as OWNER+NAME, `--packages` what `pip install --no-deps --target` made of
the add-on packages. Both sides get a copy, in which `https` is `http`, so that a proxy of ours answers with pages that have the
spiders' markup; both crawl without delays and robots.txt, with the package's RedisPipeline in place of the project's pipelines.
scrapy-redis runs in `.venv-peers`, Trawl in this environment. The exit code is 1 where items differ.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.peers import environment
from benchmarks.support.report import Report, options
from tests.support.redis_server import RedisServer

LIMIT_S = 180
GUIDE = (
    "grep -rlw scrapy_redis . --include='*.py' --include='*.tmpl' --include=scrapy.cfg"
    r" | xargs sed -i 's/\bscrapy_redis\b/redis_components/g'"
)
PLAIN_HTTP = r"grep -rlE 'https?://' . --include='*.py' | xargs -r sed -i 's#https\?://#http://#g'"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A project: its spider, and what starts it."""

    project: str
    spider: str
    folder: str = "."
    key: str = ""
    urls: tuple[str, ...] = ()
    package: str = ""
    """An add-on package, copied into the project."""
    settings: tuple[str, ...] = ()


EXAMPLE = "example-project"
BASE = "rmax/scrapy-redis"
CASES = {
    "dmoz": Case(project=BASE, folder=EXAMPLE, spider="dmoz"),
    "myspider": Case(
        project=BASE,
        folder=EXAMPLE,
        spider="myspider_redis",
        key="myspider:start_urls",
        urls=tuple(f"http://a.org/t/{number}" for number in range(1, 6)),
    ),
    "mycrawler": Case(
        project=BASE, folder=EXAMPLE, spider="mycrawler_redis", key="mycrawler:start_urls", urls=("http://a.org/t/1",)
    ),
    "playbook": Case(
        project="python-scrapy-playbook/scaling-python-scrapy-redis",
        spider="scrape_quotes_worker",
        key="quotes_queue:start_urls",
        urls=tuple(f"http://quotes.toscrape.com/page/{number}/" for number in range(1, 11)),
    ),
    "ziru": Case(
        project="Family-TreeSY/Scrapy-Redis-Spider",
        folder="ziru",
        spider="ziroom",
        key="ziroomspider:start_urls",
        urls=("http://sh.ziroom.com/z/nl/z2.html",),
    ),
    "tencent": Case(project="francislinker/tencent_scrapy_redis", folder="tencent/Tencent", spider="tencent"),
    "csdn": Case(
        project="xiuker/scrapy-redis_csdn",
        folder="slave/demo",
        spider="csdnclass",
        key="csdnspider:start_urls",
        urls=tuple(f"http://edu.csdn.net/c/{number}" for number in range(1, 9)),
    ),
    "jianshu": Case(
        project="lijuncheng1993/scrapy_redis_jianshu",
        spider="jianshu01",
        key="jianshu:start_urls",
        urls=("http://www.jianshu.com/p/1",),
    ),
    "youyuan": Case(
        project="assasin0308/scrapy-redis-youyuan",
        folder="youyuan",
        spider="yy",
        key="yyspider:start_urls",
        urls=("http://www.youyuan.com/find/beijing/mm0-0/advance-0-0-0-0-0-0-0/p1/",),
    ),
    "dangdang": Case(project="gxwyz/dangdang_scrapy_redis", spider="dd", key="dangdang", urls=("http://book.dangdang.com/",)),
    "lianjia": Case(
        project="xingzhe1998/scrapy-redis-lianjia",
        spider="spider",
        key="crawl_url:",
        urls=tuple(f"http://sz.lianjia.com/zufang/pg{number}/" for number in range(1, 6)),
    ),
    "fang": Case(
        project="Sui520/scrapy-redis-fang",
        spider="fang_spider",
        key="fang:start_urls",
        urls=("http://www.fang.com/SoufunFamily.htm",),
    ),
    "scrapy-redis-bloomfilter": Case(
        project=BASE,
        folder=EXAMPLE,
        spider="dmoz",
        package="scrapy_redis_bloomfilter",
        settings=(
            "SCHEDULER=scrapy_redis_bloomfilter.scheduler.Scheduler",
            "DUPEFILTER_CLASS=scrapy_redis_bloomfilter.dupefilter.RFPDupeFilter",
            "BLOOMFILTER_BIT=20",
        ),
    ),
    "scrapy-redis-bf": Case(
        project=BASE,
        folder=EXAMPLE,
        spider="dmoz",
        package="scrapy_redis_bf",
        settings=("SCHEDULER=scrapy_redis_bf.scheduler.Scheduler",),
    ),
    "scrapy-redis-httpcache": Case(
        project=BASE,
        folder=EXAMPLE,
        spider="dmoz",
        package="scrapy_redis_httpcache",
        settings=(
            "HTTPCACHE_ENABLED=1",
            "HTTPCACHE_EXPIRATION_SECS=600",
            "HTTPCACHE_STORAGE=scrapy_redis_httpcache.RedisCacheStorage",
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A crawl by one of both packages."""

    code: int
    pages: int
    items: Counter[str]
    error: str


def main() -> int:
    """Crawl each project twice and print the report."""
    parser = options(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="clones, as OWNER+NAME")
    parser.add_argument("--packages", type=Path, help="installed add-on packages")
    parser.add_argument("--only", nargs="+", choices=CASES, default=[*CASES], metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--list", action="store_true", help="print what FOLDER has to have")
    chosen = parser.parse_args()
    if chosen.list or chosen.folder is None:
        print("\n".join(dict.fromkeys(one.project for one in CASES.values())))
        print("\n".join(f"--packages: {one.package}" for one in CASES.values() if one.package))
        return 0
    peer = environment.interpreter()
    if peer is None:
        return 1
    sys.argv = [sys.argv[0], *("FOLDER" if Path(word).is_dir() else word for word in sys.argv[1:])]  # as the report names it
    report = Report(title="Public projects", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows: list[Sequence[object]] = []
    with tempfile.TemporaryDirectory(prefix="trawl-projects-") as made, RedisServer() as server, pages_of_all_sites() as proxy:
        for name in chosen.only:
            place = chosen.folder.resolve() / CASES[name].project.replace("/", "+") / CASES[name].folder
            if not place.is_dir() or (CASES[name].package and not chosen.packages):
                rows.append([name, "", "", "not in the folder"])
                continue
            runs = []
            for package, python in (("scrapy_redis", peer), ("redis_components", sys.executable)):
                copy = Path(made) / f"{name}-{package}"
                shutil.copytree(place, copy)
                if CASES[name].package:
                    shutil.copytree(chosen.packages.resolve() / CASES[name].package, copy / CASES[name].package)
                runs.append(crawl(CASES[name], copy, package, python, server, proxy))
            theirs, ours = runs
            same = theirs.items == ours.items and theirs.pages == ours.pages
            fault = ours.error if not ours.items else ""
            rows.append(
                [name, *(f"{one.pages}, {one.items.total()}" for one in runs), "equal" if same else f"differ {fault}".strip()]
            )
            print(rows[-1], file=sys.stderr, flush=True)
    report.table(["project", "pages, items by scrapy-redis", "by Trawl", "items one by one"], rows)
    report.target("the same items by both", all(row[-1] in ("equal", "not in the folder") for row in rows))
    report.finish(chosen)
    return int(not all(reached for _, reached in report.targets))


def crawl(case: Case, copy: Path, package: str, python: str, server: RedisServer, proxy: str) -> Seen:
    """Run the project's spider once in its copy."""
    subprocess.run(PLAIN_HTTP, shell=True, cwd=copy, check=False)  # noqa: S602
    if package != "scrapy_redis":
        subprocess.run(GUIDE, shell=True, cwd=copy, check=False)  # noqa: S602 - as the guide prints it
    client = server.client()
    client.flushall()
    if case.key:
        client.rpush(case.key, *case.urls)
    root = next(iter(sorted(copy.rglob("scrapy.cfg"))), copy / "scrapy.cfg").parent
    address = re.match(r"redis://(?::(?P<password>[^@]*)@)?(?P<host>[^:/]+):(?P<port>\d+)", server.url)
    assert address
    alike = {
        "REDIS_URL": server.url,
        "DOWNLOAD_DELAY": "0",
        "DOWNLOAD_SLOTS": "{}",
        "ROBOTSTXT_OBEY": "0",
        "ITEM_PIPELINES": json.dumps({f"{package}.pipelines.RedisPipeline": 300}),
        "MAX_IDLE_TIME_BEFORE_CLOSE": "5",
        "CLOSESPIDER_TIMEOUT": str(LIMIT_S - 60),
        "LOG_LEVEL": "INFO",
        "HTTPCACHE_REDIS_HOST": address["host"],
        "HTTPCACHE_REDIS_PORT": address["port"],
        "HTTPCACHE_REDIS_PASSWORD": address["password"] or "",
        **dict(one.split("=", 1) for one in case.settings),
    }
    words = [word for key, value in alike.items() for word in ("-s", f"{key}={value}")]
    environment_ = {key: value for key, value in os.environ.items() if not key.startswith(("TRAWL", "PYTHON"))}
    environment_ |= {"http_proxy": proxy, "no_proxy": "", "NO_PROXY": "", "PYTHONPATH": str(root)}
    command = [python, "-m", "scrapy", "crawl", case.spider, *words]
    try:
        done = subprocess.run(command, cwd=root, env=environment_, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        code, text = done.returncode, done.stderr
    except subprocess.TimeoutExpired as late:
        code, text = -1, (late.stderr or b"").decode()
    items = [json.loads(raw) for raw in client.lrange(f"{case.spider}:items", 0, -1)]  # type: ignore[union-attr]
    counted = Counter(json.dumps({key: value for key, value in one.items() if key != "crawled"}, sort_keys=True) for one in items)
    pages = re.search(r"'downloader/response_count': (\d+)", text)
    errors = [line for line in text.splitlines() if re.search("Error|Exception", line)]
    return Seen(code=code, pages=int(pages[1]) if pages else 0, items=counted, error=(errors or [""])[-1][:200])


class pages_of_all_sites:  # noqa: N801 - a context
    """A proxy on loopback that answers for every host with a page of ours."""

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = page(self.path if self.path.startswith("http") else f"http://{self.headers['Host']}{self.path}").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


LINKS = (
    *(f"http://sh.ziroom.com/z/nl/z2.html?qwd=&p={number}" for number in range(1, 6)),
    *(f"http://sh.ziroom.com/z/vr/{number}.html" for number in range(1, 11)),
    *(f"http://www.youyuan.com/find/beijing/mm0-0/advance-0-0-0-0-0-0-0/p{number}/" for number in range(1, 5)),
    *(f"http://www.youyuan.com/{number}-profile/" for number in range(1, 11)),
    *(f"http://www.jianshu.com/p/{number}" for number in range(1, 21)),
)


def page(url: str) -> str:
    """Return a page with the markup that the spiders read; on other hosts it leads to two more, up to number 40."""
    host, number = url.split("/")[2], int((re.findall(r"\d+", url) or ["0"])[-1]) % 1000
    tree = [f"http://{host}/t/{next_}" for next_ in ((2 * number, 2 * number + 1) if number else (1,)) if next_ <= 40]
    links = [one for one in LINKS if one.split("/")[2] == host] or tree
    parts = [f'<div class="top-cat cat-item"><a href="{one}">l</a></div>' for one in links]
    parts += [f'<div class="quote"><span class="text">q{n} {url}</span><small class="author">a</small></div>' for n in (0, 1)]
    parts += [
        f'<div class="title-and-desc"><a href="{url}#{n}"><div class="site-title">s{n} {url}</div></a>'
        '<div class="site-descr">d</div></div>'
        for n in (0, 1)
    ]
    row = '<tr class="even"><td><a href="p{0}">z{0} {1}</a></td><td>t</td><td>1</td><td>x</td><td>2</td></tr>'
    parts.append(f"<table>{''.join(row.format(n, number) for n in range(3))}</table>")
    if "list" in url:
        book = '<li><a class="pic"><img data-original="//i{0}"></a><p class="name"><a title="b{0} {1}">x</a></p></li>'
        parts.append(f'<ul class="bigimg">{"".join(book.format(n, url) for n in range(3))}</ul>')
    else:
        shelves = "".join(f'<a href="http://category.dangdang.com/list{n}">s{n}</a>' for n in range(1, 16))
        parts.append(
            '<div class="con flq_body"><div><dl><dt>b</dt></dl><div><dl class="inner_dl"><dt>m</dt>'
            f"<dd>{shelves}</dd></dl></div></div></div>"
        )
    parts.append('<div id="content"><div><p><a href="http://sz.lianjia.com/zufang/">x 深圳租房</a></p></div></div>')
    flat = (
        '<div class="content__list--item"><a class="content__list--item--aside" href="/z/{0}{1}"><img data-src="i"></a>'
        '<div class="content__list--item--main"><p class="content__list--item--title"><a>t{0} {1}</a></p>'
        '<p class="content__list--item--des">x/y</p><span class="content__list--item-price">1</span></div></div>'
    )
    parts += [flat.format(n, number) for n in range(3)]
    cities = "".join(f'<a href="http://c{n}.fang.com/">c{n}</a>' for n in range(1, 6))
    parts.append(f'<div class="outCont"><table><tr><td>p</td><td>{cities}</td></tr></table></div>')
    if "esf." in host:
        home = (
            '<dl><h4 class="clearfix"><a href="/h/{0}"><span class="tit_shop">h{0} {1}</span></a></h4><p class="tel_shop">2厅</p>'
            '<p class="add_shop"><span>a</span></p><dd class="price_right"><span class="red">1</span><span>2</span></dd></dl>'
        )
        parts.append(f'<div class="shop_list shop_list_4">{"".join(home.format(n, host) for n in range(4))}</div>')
    parts.append(f'<div class="professor_name"><a>p {number}</a></div><div class="J_outline_discribe_content">d</div>')
    return f"<html><head><title>{url}</title></head><body><h1>h {url}</h1><time>1</time>{''.join(parts)}</body></html>"


if __name__ == "__main__":
    sys.exit(main())
