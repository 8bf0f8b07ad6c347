"""Site files for the demo's forum under other names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def declare(folder: Path, name: str, url: str, more: str = "") -> Path:
    """A site file for a demo forum at `url`; returns its path."""
    text = (ROOT / "demo" / "sites" / "demo.toml").read_text("utf-8").replace("${TRAWL_DEMO_URL:-http://127.0.0.1:8765}", url)
    path = folder / f"{name}.toml"
    path.write_text(text + more, "utf-8")
    return path
