"""A picture of the dashboards without Grafana: panels, places, queries, units and legends of the files that Grafana is given,
drawn with the data of a running Prometheus. It shows what the dashboards have to say, not how Grafana draws.
"""

from __future__ import annotations

import html
import json
import re
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .engine import ROOT
from .monitored import photographed

FOLDER = ROOT / "deploy/grafana/dashboards"
COLUMN, ROW = 48, 26  # pixels of Grafana's grid
STEP_S = 5
COLOURS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#37872d", "#8ab8ff")
STYLE = """body{margin:0;padding:12px;width:1152px;background:#111217;color:#ccccdc;font:12px sans-serif}
h1{font-size:17px;margin:14px 0 2px} p{margin:0 0 6px;color:#9a9aac} .grid{position:relative}
.panel{position:absolute;box-sizing:border-box;background:#181b1f;border:3px solid #111217;padding:4px 8px;overflow:hidden}
.panel b{font-weight:500} .legend{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-size:10px}
.figure{font-size:34px;text-align:center;padding-top:14px}"""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Line(NamedTuple):
    """One series."""

    legend: str
    points: list[tuple[float, float]]


def picture(server: str, seconds: float, path: Path, chromium: str) -> None:
    """Draw all dashboards with what this Prometheus has of the last `seconds`."""
    until = time.time()

    def ask(query: str) -> list[dict[str, Any]]:
        words = {"query": re.sub(r"\$\w+", ".*", query), "start": until - seconds, "end": until, "step": STEP_S}
        with _DIRECT.open(f"http://{server}:9090/api/v1/query_range?{urllib.parse.urlencode(words)}", timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    boards = [json.loads((FOLDER / f"trawl-{name}.json").read_text()) for name in ("fleet", "crawls", "sites")]
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "dashboards.html"
        body = "".join(_board(board, ask, (until - seconds, until)) for board in boards)
        drawn.write_text(f"<meta charset=utf-8><style>{STYLE}</style>{body}", "utf-8")
        height = sum(ROW * _rows(board) + 60 for board in boards) + 40
        photographed(chromium, drawn.as_uri(), path, size=(1176, height))


def _rows(board: dict[str, Any]) -> int:
    return max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in board["panels"])


def _board(board: dict[str, Any], ask: Callable[[str], list[dict[str, Any]]], span: tuple[float, float]) -> str:
    said = f"drawn from deploy/grafana/dashboards/{board['uid']}.json with the data of Prometheus; not a picture of Grafana"
    panels = "".join(
        _panel(one, [line for each in one["targets"] for line in _lines(each, ask)], span) for one in board["panels"]
    )
    return f"<h1>{board['title']}</h1><p>{said}</p><div class=grid style='height:{ROW * _rows(board)}px'>{panels}</div>"


def _lines(target: dict[str, Any], ask: Callable[[str], list[dict[str, Any]]]) -> Iterable[Line]:
    for series in ask(target["expr"]):
        named = re.sub(r"{{(\w+)}}", lambda found, labels=series["metric"]: labels.get(found[1], ""), target["legendFormat"])
        points = [(float(at), float(value)) for at, value in series["values"] if value not in ("NaN", "+Inf", "-Inf")]
        if points:
            yield Line(" ".join(named.split()), points)


def _panel(panel: dict[str, Any], lines: list[Line], span: tuple[float, float]) -> str:
    place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
    box = {"left": COLUMN * place["x"], "top": ROW * place["y"], "width": COLUMN * place["w"], "height": ROW * place["h"]}
    style = ";".join(f"{name}:{size}px" for name, size in box.items())
    if not lines:
        inside = "<div class=figure>no data</div>"
    elif panel["type"] == "stat":
        inside = _figure(panel, lines[0].points[-1][1], unit)
    else:
        inside = _chart(lines, span, unit, box["width"] - 22, box["height"] - 62)
    return f"<div class=panel style='{style}'><b>{html.escape(panel['title'])}</b>{inside}</div>"


def _figure(panel: dict[str, Any], value: float, unit: str) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    shown = {"green": COLOURS[0], "red": COLOURS[4]}[colour]
    return f"<div class=figure style='color:{shown}'>{_said(value, unit)}</div>"


def _chart(lines: list[Line], span: tuple[float, float], unit: str, width: int, height: int) -> str:
    top = max((value for line in lines for _, value in line.points), default=0.0) or 1.0
    left, (begin, end) = 52, span
    drawn = [
        f"<line x1={left} x2={width} y1={y} y2={y} stroke='#2c3235'/>"
        f"<text x=0 y={y + 4} fill='#9a9aac' font-size=10>{said}</text>"
        for y, said in ((6, _said(top, unit)), (height / 2 + 3, _said(top / 2, unit)), (height, _said(0, unit)))
    ]
    for number, line in enumerate(lines):
        points = " ".join(
            f"{left + (width - left) * (at - begin) / (end - begin):.1f},{height - (height - 6) * value / top:.1f}"
            for at, value in line.points
        )
        drawn.append(f"<polyline fill=none stroke-width=1.5 stroke='{COLOURS[number % len(COLOURS)]}' points='{points}'/>")
    legend = " &nbsp; ".join(
        f"<span style='color:{COLOURS[number % len(COLOURS)]}'>━</span> {html.escape(line.legend)}"
        for number, line in enumerate(lines)
    )
    return f"<svg width={width} height={height + 6}>{''.join(drawn)}</svg><div class=legend>{legend}</div>"


def _said(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    suffix = {"s": " s", "bytes": "B", "Bps": "B/s", "reqps": " req/s"}.get(unit, "")
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor and unit != "s":
            return f"{value / factor:.3g} {letter}{suffix.strip()}"
    return f"{value:.3g}{suffix}"
