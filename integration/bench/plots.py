"""The plots of a run: ratios at a glance, the cost of a commit, memory."""

import math
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import peers
from results import OURS, Results

COLOURS = {peer: plt.get_cmap("tab20")(number) for number, peer in enumerate(p for p in peers.PEERS if p != OURS)}
OUR_COLOUR = "black"


def colour(peer: str):
    return COLOURS.get(peer, OUR_COLOUR)


def finish(figure, path: pathlib.Path) -> None:
    figure.savefig(path, dpi=80, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def ratios(path: pathlib.Path, results: Results, entries: list) -> bool:
    """A line a workload, a dot a peer, on a logarithmic axis: right of 1 Contrail is faster."""
    rows = [(name, text, key) for name, text, _, key in entries if any(results.ratio(name, p, key) for p in COLOURS)]
    if not rows:
        return False
    figure, axes = plt.subplots(figsize=(11, 1.2 + 0.27 * len(rows)))
    for line, (name, _, key) in enumerate(rows):
        for peer in COLOURS:
            ratio = results.ratio(name, peer, key)
            if ratio:
                axes.plot(ratio, line, "o", color=colour(peer), alpha=0.85, markersize=6)
    axes.axvspan(1e-6, 1, color="#f8dddd", zorder=0)
    found = [results.ratio(name, p, key) for name, _, key in rows for p in COLOURS]
    known = [math.log10(ratio) for ratio in found if ratio]
    axes.set(
        xscale="log",
        xlim=(10 ** (min(known + [-0.5]) - 0.1), 10 ** (max(known + [0.5]) + 0.1)),
        ylim=(len(rows) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(rows)), [text for _, text, _ in rows], fontsize=8)
    axes.xaxis.set_major_formatter("{x:g}×")
    axes.set_xlabel("how many times faster Contrail is (left of 1: slower)")
    axes.grid(axis="both", alpha=0.3)
    seen = [p for p in COLOURS if any(results.ratio(name, p, key) for name, _, key in rows)]
    marks = [plt.Line2D([], [], marker="o", linestyle="", color=colour(p), label=peers.PEERS[p].title) for p in seen]
    axes.legend(handles=marks, fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1), ncols=5, frameon=False)
    finish(figure, path)
    return True


def bars(path: pathlib.Path, results: Results, panels: list) -> bool:
    """A panel a workload, a bar a peer; a panel is (workload, key, scale, title)."""
    panels = [p for p in panels if any(results.median(p[0], peer, p[1]) for peer in peers.PEERS)]
    if not panels:
        return False
    figure, all_axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.2), squeeze=False)
    for axes, (name, key, scale, text) in zip(all_axes[0], panels):
        found = [(p, results.median(name, p, key)) for p in peers.PEERS if results.median(name, p, key) is not None]
        axes.barh(
            [peers.PEERS[p].title for p, _ in found], [v * scale for _, v in found], color=[colour(p) for p, _ in found]
        )
        for line, (_, value) in enumerate(found):
            axes.text(value * scale, line, f" {value * scale:,.3g}", va="center", fontsize=7)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(text, fontsize=9)
        axes.tick_params(labelsize=7)
    figure.tight_layout()
    finish(figure, path)
    return True


def draw(folder: pathlib.Path, results: Results, entries: list) -> list[tuple[pathlib.Path, str]]:
    """Draw what there is; returns each file with its description."""
    commits = [(f"commit.{n}", "wall", 1e3, f"1 row at {n:,} versions, ms") for n in (100, 500, 2_000, 10_000)]
    small = [
        (f"small.{name}", "per_second", 1, f"{name.replace('x', ' rows × ')} clients, appends/s")
        for name in ("1x1", "1x8", "1000x8")
    ]
    memory = [
        (name, "over_mb", 1, f"{name}, MB over the start")
        for name in ("append.ordered", "append.shuffled", "scan.full")
    ]
    drawn = [
        (folder / "ratios.png", "ratios", ratios(folder / "ratios.png", results, entries)),
        (folder / "small.png", "small appends", bars(folder / "small.png", results, small + commits)),
        (folder / "memory.png", "memory", bars(folder / "memory.png", results, memory)),
    ]
    return [(path, text) for path, text, done in drawn if done]
