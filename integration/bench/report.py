"""The page of a run, in Markdown: ratios first, then the bar, then every figure."""

import pathlib
import statistics

import peers
import workloads
from musts import MUSTS
from results import MISSING, OURS, Results

# The columns of a workload's table by its operation: title, key, scale.
MEMORY = [("over start MB", "over_mb", 1), ("of it server MB", "server_mb", 1)]
COLUMNS = {
    "append": [
        ("s", "wall", 1),
        ("CPU s", "cpu", 1),
        ("fsync after it s", "sync", 1),
        *MEMORY,
        ("MB on disk", "bytes", 1e-6),
    ],
    "scan": [("warm ms", "wall", 1e3), ("first ms", "first", 1e3), ("CPU ms", "cpu", 1e3), *MEMORY],
    "small": [
        ("appends/s", "per_second", 1),
        ("median ms", "median", 1e3),
        ("99 % ms", "p99", 1e3),
        ("CPU ms", "cpu", 1e3),
        ("fsync after it ms", "sync", 1e3),
        ("KB each", "bytes", 1e-3),
        ("rows lost", "lost", 1),
        ("failed clients", "errors", 1),
    ],
    "grow": [
        ("commit ms", "wall", 1e3),
        ("at the start ms", "early", 1e3),
        ("worst ms", "worst", 1e3),
        ("CPU ms", "cpu", 1e3),
        ("versions reached", "versions", 1),
        ("files", "files", 1),
        ("MB on disk", "bytes", 1e-6),
    ],
    "cold": [("open ms", "wall", 1e3), ("CPU ms", "cpu", 1e3), ("then scan all ms", "scan", 1e3), *MEMORY],
    "update": [
        ("s", "wall", 1),
        ("CPU s", "cpu", 1),
        ("fsync after it s", "sync", 1),
        *MEMORY,
        ("MB written", "bytes", 1e-6),
    ],
    "optimize": [
        ("s", "wall", 1),
        ("CPU s", "cpu", 1),
        ("fsync after it s", "sync", 1),
        *MEMORY,
        ("scan all before ms", "before", 1e3),
        ("after ms", "after", 1e3),
    ],
    "vacuum": [("ms", "wall", 1e3), ("CPU ms", "cpu", 1e3), *MEMORY, ("data files deleted", "deleted", 1)],
    "go": [("ms", "wall", 1e3)],
}
COLUMNS |= dict.fromkeys(("latest", "gaps", "query", "spark"), COLUMNS["scan"])
COLUMNS |= {"overwrite": COLUMNS["update"], "staged": COLUMNS["append"]}


def number(value: float | None) -> str:
    if value is None:
        return "–"
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 100 or value == 0
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 1
        else f"{value:.2g}"
    )


def brief(entry: dict) -> str:
    """A measurement in a line of the run's progress."""
    for key in MISSING:
        if key in entry:
            return f"{key}: {entry[key]}"
    figures = {
        "wall": ("ms", 1e3),
        "first": ("ms first", 1e3),
        "per_second": ("a second", 1),
        "cpu": ("ms CPU", 1e3),
        "over_mb": ("MB", 1),
    }
    told = [
        f"{number(entry[key] * scale)} {unit}" for key, (unit, scale) in figures.items() if entry.get(key) is not None
    ]
    return ", ".join(told) + ("" if entry.get("right", True) else ", WRONG ROWS")


def title(peer: str) -> str:
    return peers.PEERS[peer].title


def entries(plan: list) -> list[tuple[str, str, str, str]]:
    """(name, title, operation, compared key) of everything that is measured, Go benchmarks last."""
    rows = [(w.name, w.title, w.does["op"], w.key) for w in plan]
    return rows + [(name, text, "go", "wall") for name, text in workloads.GO_TITLES.items()]


def ratios(results: Results, plan: list) -> list[str]:
    """Workloads by peers: how many times faster we are."""
    columns = [p for p in peers.PEERS if p != OURS and any(e["peer"] == p for e in results.entries)]
    lines = [
        "| | Contrail | " + " | ".join(title(p) for p in columns) + " |",
        "| --- |" + " --: |" * (len(columns) + 1),
    ]
    for name, text, _, key in entries(plan):
        mine = results.median(name, OURS, key)
        if not results.measured(name) or (mine is None and results.why_missing(name, OURS) == "not measured"):
            continue
        own = "not offered" if mine is None else amount(mine, key)
        cells = [ratio_cell(results, name, peer, key) for peer in columns]
        lines.append(f"| {text} | {own} | " + " | ".join(cells) + " |")
    return lines


def ratio_cell(results: Results, name: str, peer: str, key: str) -> str:
    if (name, peer) not in results.by:
        return ""
    theirs, ratio = results.median(name, peer, key), results.ratio(name, peer, key)
    if theirs is None:
        return "–" if results.why_missing(name, peer) == "not offered" else "!"
    if ratio is None:  # no figure of ours: theirs as it is
        text = amount(theirs, key)
    else:
        text = f"{number(ratio)}×" if ratio >= 1 else f"**{number(ratio)}×**"
    wrong = results.right(name, peer) == "**NO**"
    stopped = any(e.get("stopped") for e in results.good(name, peer))
    return text + " wrong" * wrong + " (fewer versions)" * stopped


def amount(value: float, key: str) -> str:
    return f"{number(value)}/s" if key == "per_second" else duration(value)


def duration(seconds: float) -> str:
    return next(
        f"{number(seconds / size)} {unit}"
        for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (0, ""))
        if seconds >= size
    )


def score(results: Results, plan: list) -> str:
    """How often we win, how often we lose, against in-process libraries and servers alike."""
    found = [
        results.ratio(name, peer, key)
        for name, _, _, key in entries(plan)
        for peer in results.measured(name)
        if not peer.startswith(OURS)
    ]
    known = [ratio for ratio in found if ratio is not None]
    if not known:
        return "Nothing to compare."
    won, middle = sum(ratio >= 1 for ratio in known), statistics.median(known)
    lost = len(known) - won
    return f"Of {len(known)} comparisons Contrail wins {won} and loses {lost}; the median ratio is {middle:.1f}×."


def table(results: Results, name: str, op: str, key: str) -> list[str]:
    """One workload, every figure of every peer."""
    columns = [c for c in COLUMNS[op] if any(results.median(name, p, c[1]) is not None for p in results.measured(name))]
    heads = [columns[0][0], "spread", "× ours", *(c[0] for c in columns[1:])] if columns else []
    rights = any(results.right(name, p) for p in results.measured(name))
    lines = ["| | " + " | ".join(heads + ["right"] * rights) + " |", "| --- |" + " --: |" * (len(heads) + rights)]
    for peer in results.measured(name):
        missing = results.why_missing(name, peer)
        if missing:
            lines.append(f"| {title(peer)} | {missing} |" + " |" * (len(heads) + rights - 1))
            continue
        cells = [number(scaled(results.median(name, peer, k), scale)) for _, k, scale in columns]
        ratio = results.ratio(name, peer, key)
        cells[1:1] = [results.spread(name, peer, key), f"{number(ratio)}×" if ratio else ""]
        lines.append(f"| {title(peer)} | " + " | ".join(cells + [results.right(name, peer)] * rights) + " |")
    return lines


def scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def described(results: Results) -> list[str]:
    asked = [p for p in peers.PEERS if any(e["peer"] == p for e in results.entries)]
    lines = ["| | how it is used | what is durable when a write returns |", "| --- | --- | --- |"]
    for peer in asked:
        about = peers.PEERS[peer]
        lines.append(f"| {about.title} | {about.use} | {about.durable} |")
    return lines


HEAD = (pathlib.Path(__file__).parent / "page.md").read_text(encoding="utf-8")


def plots(page: pathlib.Path, results: Results, plan: list) -> str:
    """Draw them beside the page, where matplotlib is installed; returns the lines that show them."""
    try:
        import plots
    except ImportError:
        return ""
    folder = page.parent / "bench" / "plots" if page.parent.name == "integration" else page.parent / "plots"
    folder.mkdir(exist_ok=True)
    drawn = plots.draw(folder, results, entries(plan))
    return "".join(f"![{text}]({path.relative_to(page.parent)})\n\n" for path, text in drawn)


def write(page: pathlib.Path, facts: dict, found: list[dict], plan: list) -> None:
    results = Results(found)
    foreign = [e["foreign"] for e in found if "foreign" in e]
    text = HEAD.format(
        **{
            key: facts[key]
            for key in ("commit", "date", "cores", "cpu", "memory_gb", "system", "go", "python", "rounds")
        },
        packages=", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        foreign=statistics.median(foreign) if foreign else 0,
        small=max(w.does.get("seconds", 0) for w in plan if w.does["op"] == "small"),
        growth=max(w.does.get("seconds", 0) for w in plan if w.does["op"] == "grow"),
        scaled="" if facts["scale"] == 1 else f"**Only {facts['scale']:.1%} of the rows that the titles name.** ",
        score=score(results, plan),
        plots=plots(page, results, plan),
        ratios="\n".join(ratios(results, plan)),
        musts="\n".join(must.row(results) for must in MUSTS),
        described="\n".join(described(results)),
    )
    for name, heading, op, key in entries(plan):
        if results.measured(name):
            text += f"\n## `{name}`: {heading}\n\n" + "\n".join(table(results, name, op, key)) + "\n"
    page.write_text(text, encoding="utf-8")
