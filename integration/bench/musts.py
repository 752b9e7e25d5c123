"""The project's own bar: each "must" and "target" that a workload can measure, and how far we are from it."""

import dataclasses
from collections.abc import Callable

from results import Results


@dataclasses.dataclass(frozen=True)
class Must:
    text: str
    must: float
    target: float
    value: Callable[[Results], float | None]
    unit: str = "×"
    smaller: bool = False  # the smaller the better

    def row(self, results: Results) -> str:
        found, bound = self.value(results), "≤ " if self.smaller else "≥ "
        asked = f"{bound}{self._text(self.must)} | {bound}{self._text(self.target)}"
        if found is None:
            return f"| {self.text} | {asked} | – | not measured |"
        return f"| {self.text} | {asked} | {self._text(found)} | {self._verdict(found)} |"

    def _verdict(self, found: float) -> str:
        reach = (lambda bar: found <= bar) if self.smaller else (lambda bar: found >= bar)
        if reach(self.target):
            return "target met"
        if reach(self.must):
            return "must met"
        distance = found / self.must if self.smaller else self.must / found
        return f"**short by {distance:.2f}×**"

    def _text(self, value: float) -> str:
        digits = 0 if value >= 100 else 1 if value >= 10 else 2
        return (
            f"{value:.{digits}f}".rstrip("0").rstrip(".") + self.unit
            if "." in f"{value:.{digits}f}"
            else f"{value:.0f}{self.unit}"
        )


def faster(workload: str, peer: str, ours: str = "contrail"):
    """How many times faster we are than the peer."""
    return lambda results: results.ratio(workload, peer, ours=ours)


def figure(workload: str, key: str, scale: float = 1, peer: str = "contrail"):
    """A figure of our own."""

    def value(results):
        found = results.median(workload, peer, key)
        return None if found is None else found * scale

    return value


def quotient(above, below):
    def value(results):
        a, b = above(results), below(results)
        return None if a is None or not b else a / b

    return value


def scan_share(results):
    """The served scan's bytes a second as a share of what our Flight layer moves from memory."""
    size, wall = (
        results.median("append.ordered", "contrail", "input_bytes"),
        results.median("scan.full", "contrail", "wall"),
    )
    ceiling = results.median("flight.get", "contrail", "mb_per_second")
    return None if not (size and wall and ceiling) else size / 1e6 / wall / ceiling


MUSTS = [
    Must("DoGet from memory against stock arrow-go Flight", 1.4, 1.9, faster("flight.get", "stock_flight")),
    Must("DoPut into memory against stock arrow-go Flight", 1.4, 1.9, faster("flight.put", "stock_flight")),
    Must("full scan served, unordered, against DuckDB to Arrow in process", 2.0, 3.2, faster("scan.full", "duckdb")),
    Must(
        "full scan sorted: time against unordered",
        1.6,
        1.3,
        quotient(figure("scan.full", "wall", peer="contrail_sorted"), figure("scan.full", "wall")),
        smaller=True,
    ),
    Must("full scan served: share of our own Flight layer's speed from memory", 0.55, 0.70, scan_share),
    Must("full scan served against stock pqarrow + stock Flight", 2.5, 3.9, faster("scan.full", "stock_flight")),
    Must("decode against stock pqarrow", 3, 4, faster("decode", "stock_flight")),
    Must(
        "one entity of 1,000, warm, served, against DuckDB on a sorted file",
        1.0,
        2.0,
        faster("scan.entity", "duckdb_sorted", ours="contrail_sorted"),
    ),
    Must(
        "1 % of the time, warm, served, against DuckDB on a time-ordered file",
        1 / 3,
        2 / 3,
        faster("scan.range", "duckdb", ours="contrail_sorted"),
    ),
    Must("newest rows of 1,000 entities, warm (served)", 5, 0.2, figure("latest.1000", "wall", 1e3), " ms", True),
    Must(
        "newest rows of 1,000 entities, first call (served)", 50, 20, figure("latest.1000", "first", 1e3), " ms", True
    ),
    Must("newest rows of 100,000 entities, warm (served)", 5, 5, figure("latest.100000", "wall", 1e3), " ms", True),
    Must(
        "newest rows of 100,000 entities, first call (served)",
        50,
        20,
        figure("latest.100000", "first", 1e3),
        " ms",
        True,
    ),
    Must("append in time order against DuckDB COPY ORDER BY", 2.0, 3.3, faster("append.ordered", "duckdb_sorted")),
    Must("append in no order against DuckDB COPY ORDER BY", 1.5, 2.5, faster("append.shuffled", "duckdb_sorted")),
    Must("append of sorted rows against DuckDB COPY", 0.8, 1.0, faster("append.sorted", "duckdb")),
    Must(
        "file size against DuckDB snappy, both sorted",
        1.1,
        0.8,
        quotient(figure("append.ordered", "bytes"), figure("append.ordered", "bytes", peer="duckdb_sorted")),
        smaller=True,
    ),
    Must("durable appends of 1 row, 1 client", 400, 700, figure("small.1x1", "per_second"), "/s"),
    Must("durable appends of 1 row, 16 clients", 800, 3_000, figure("small.1x16", "per_second"), "/s"),
    Must("durable appends of 1,000 rows, 1 client", 400, 700, figure("small.1000x1", "per_second"), "/s"),
    Must(
        "commit cost at 10,000 versions against that at 10",
        1.5,
        1.1,
        quotient(figure("commit.10000", "wall"), figure("commit.2000", "early")),
        smaller=True,
    ),
    Must("plan one entity of a table of 10,000 files, warm", 1, 0.1, figure("plan.entity", "wall", 1e3), " ms", True),
    Must("open a table of 10,000 files, cold", 100, 60, figure("plan.cold.10000", "wall", 1e3), " ms", True),
    Must("open a table of 2,000 versions, cold", 10, 4, figure("plan.cold.2000", "wall", 1e3), " ms", True),
    Must("update 65,536 of 262,144 rows against deltalake's merge", 1.0, 2.0, faster("update.narrow", "deltalake")),
    Must("update 262,144 rows of 4 KiB against deltalake's merge", 1.0, 2.0, faster("update.payload", "deltalake")),
    Must("… memory over the start, server", 400, 200, figure("update.payload", "server_mb"), " MB", True),
    Must("update 1 row of 1 M", 100, 20, figure("update.one", "wall", 1e3), " ms", True),
    Must("compact 1,000 files against deltalake", 1.0, 2.0, faster("optimize.files", "deltalake")),
    Must("vacuum after it against deltalake", 1.0, 2.0, faster("vacuum.files", "deltalake")),
    Must("memory over the start, full scan, server", 150, 100, figure("scan.full", "server_mb"), " MB", True),
    Must(
        "memory over the start, append of sorted rows, server",
        200,
        130,
        figure("append.sorted", "server_mb"),
        " MB",
        True,
    ),
    Must(
        "memory over the start, append in no order, server",
        400,
        300,
        figure("append.shuffled", "server_mb"),
        " MB",
        True,
    ),
]
