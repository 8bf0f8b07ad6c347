"""The status page's style: system fonts, light and dark as the reader's system says, nothing loaded from anywhere."""

STYLE = """
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1c2024; --faint: #667085; --line: #e4e7ec;
  --good: #067647; --good-ground: #dcfae6; --bad: #b42318; --bad-ground: #fee4e2; --wait: #93610a; --wait-ground: #fef0c7; }
@media (prefers-color-scheme: dark) { :root { --ground: #101418; --card: #181d23; --text: #e6e9ee; --faint: #97a1ae;
  --line: #2a313a; --good: #6fe0a2; --good-ground: #11351f; --bad: #ff9d94; --bad-ground: #451c1a; --wait: #f5cd6b;
  --wait-ground: #3d2f0c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(.75rem, 3vw, 2.5rem) 3rem; max-width: 84rem; background: var(--ground);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .35rem 1rem; margin-bottom: 1.5rem; }
h1 { margin: 0; font-size: 1.45rem; letter-spacing: -.01em; }
h2 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
.faint, footer { color: var(--faint); }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
table { width: 100%; border-collapse: collapse; white-space: nowrap; font-variant-numeric: tabular-nums; }
th, td { padding: .5rem .75rem; text-align: left; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--faint); font-weight: 500; font-size: .82rem; }
tbody th { font-weight: 600; }
.n { text-align: right; }
.zero { color: var(--faint); }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 16rem; }
.story td { border-top: 0; padding-top: 0; white-space: normal; overflow-wrap: anywhere; color: var(--faint); font-size: .87rem; }
.badge { display: inline-block; padding: .08rem .6rem; border-radius: 1rem; font-size: .85rem; font-weight: 500; }
.good { color: var(--good); background: var(--good-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.wait { color: var(--wait); background: var(--wait-ground); }
.alarm { margin: 0 0 1rem; padding: .8rem 1rem; border-radius: .6rem; overflow-wrap: anywhere; }
.empty { margin: 0; padding: .8rem; color: var(--faint); }
footer { margin-top: 2rem; font-size: .85rem; }
a { color: inherit; }
"""
