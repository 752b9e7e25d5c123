"""What is measured: one entry a workload. `bench.py` runs them in this order, `report.py` prints them in it."""

import dataclasses

SERVERS = ["contrail", "stock_flight", "python_flight"]
LIBRARIES = ["duckdb", "duckdb_sorted", "deltalake", "polars", "ttf", "timelake"]
WIDE = [*SERVERS, "duckdb", "deltalake", "polars", "ttf"]


@dataclasses.dataclass(frozen=True)
class Workload:
    """A named measurement of several peers.

    `does`: settings of the measured operation for measure.py. `before`: operations that lay the table anew before each
    measurement, each in a process of its own. `keep`: the table stays for later workloads under that name. `reads`: the
    kept table that this one works on. `key`: the figure that is compared, `wall` or `per_second`. `once`: one round
    suffices.
    """

    name: str
    title: str
    peers: list[str]
    does: dict
    before: tuple[dict, ...] = ()
    keep: str | None = None
    reads: str | None = None
    key: str = "wall"
    once: bool = False

    @property
    def dataset(self) -> str:
        return self.does["dataset"]


@dataclasses.dataclass(frozen=True)
class GoBenchmark:
    """Go benchmarks of a package that stand for workloads: `lines` maps a benchmark's name to (workload, peer)."""

    package: str
    pattern: str
    lines: dict[str, tuple[str, str]]
    skip: str = "^$"
    once: bool = False


# What no client can see: our Flight layer without a disk, our decoder, plans; beside arrow-go's own where it has one.
GO_TITLES = {
    "flight.get": "DoGet of 64 MB from memory",
    "flight.put": "DoPut of 64 MB into memory",
    "decode": "decode a Parquet file of 1 M ticks",
    "plan.entity": "plan one entity of a table of 10,000 files, warm",
    "plan.range": "plan a time range of a table of 10,000 files, warm",
    "plan.cold.2000": "open a table of 2,000 files and versions and plan, cold, in process",
    "plan.cold.10000": "open a table of 10,000 files and versions and plan, cold, in process",
}
GO_BENCHMARKS = [
    GoBenchmark(
        "./flightsrv/internal/wire",
        "^BenchmarkFlight$",
        {
            f"BenchmarkFlight/{way}/{whose}": (f"flight.{way}", peer)
            for way in ("get", "put")
            for whose, peer in (("ours", "contrail"), ("stock", "stock_flight"))
        },
    ),
    GoBenchmark(
        "./tablecore/internal/datafile",
        "^Benchmark(Stock)?Read$/^rows=1048576$",
        {
            "BenchmarkRead/rows=1048576": ("decode", "contrail"),
            "BenchmarkStockRead/rows=1048576": ("decode", "stock_flight"),
        },
        skip="/./column=",
    ),
    GoBenchmark(
        "./tablecore",
        "^Benchmark(Plan|Open)$/^files=(2000|10000)$/^(entity|range|by=head)$",
        {
            "BenchmarkPlan/files=10000/entity": ("plan.entity", "contrail"),
            "BenchmarkPlan/files=10000/range": ("plan.range", "contrail"),
            "BenchmarkOpen/files=2000/by=head": ("plan.cold.2000", "contrail"),
            "BenchmarkOpen/files=10000/by=head": ("plan.cold.10000", "contrail"),
        },
        once=True,
    ),
]


def operation(op: str, dataset: str, **settings) -> dict:
    return {"op": op, "dataset": dataset} | settings


def appends():
    titles = {
        "ordered": ("10 M ticks in time order", [*SERVERS, *LIBRARIES]),
        "shuffled": ("10 M ticks in no order", ["contrail", "duckdb", "duckdb_sorted", "deltalake", "ttf"]),
        "sorted": ("10 M ticks sorted by symbol and time", ["contrail", "duckdb", "deltalake"]),
        "wide": ("1 M rows of 50 doubles", WIDE),
    }
    for dataset, (title, peers) in titles.items():
        kept = dataset if dataset in ("ordered", "wide") else None
        yield Workload(f"append.{dataset}", f"append {title}", peers, operation("append", dataset), keep=kept)


def scans():
    ticks, wide = (["contrail", "contrail_sorted", *peers[1:]] for peers in ([*SERVERS, *LIBRARIES], WIDE))
    cases = {
        "full": ("all 10 M ticks", ticks, "ordered", None, 3),
        "two": ("two columns of 10 M ticks", ticks, "ordered", ["ts", "price"], 3),
        "entity": ("one symbol of 1,000, 10,000 rows of 10 M", ticks, "ordered", None, 7),
        "range": ("1 % of the time, 100,000 rows of 10 M", ticks, "ordered", None, 7),
        "wide.full": ("1 M rows of 50 doubles", wide, "wide", None, 3),
        "wide.two": ("two of 52 columns, 1 M rows", wide, "wide", ["ts", "v7"], 5),
    }
    for name, (title, peers, dataset, columns, repeat) in cases.items():
        does = operation("scan", dataset, case=name.removeprefix("wide."), columns=columns, repeat=repeat)
        yield Workload(f"scan.{name}", f"scan {title}", peers, does, reads=dataset)


def engines():
    """DuckDB over the service beside DuckDB over the files; and what several writers stage for one commit."""
    all_columns = "count(*), max(ts), max(symbol), avg(price), sum(size), max(flag), max(venue)"
    cases = {
        "full": ("every column of 10 M ticks", f"select {all_columns} from {{table}}", "rows", 3),
        "column": (
            "the average price by symbol of 10 M ticks",
            "select sum(n), max(p) from (select count(*) n, avg(price) p from {table} group by symbol)",
            "rows",
            3,
        ),
        "entity": (
            "one symbol of 1,000",
            f"select {all_columns} from {{table}} where symbol = 'S0500'",
            "entity",
            7,
        ),
    }
    for name, (title, sql, answer, repeat) in cases.items():
        does = operation("query", "ordered", sql=sql, answer=answer, repeat=repeat)
        peers = ["contrail", "contrail_files", "duckdb_sorted"]
        yield Workload(f"query.{name}", f"DuckDB: {title}", peers, does, reads="ordered")
    does = operation("staged", "ordered", tasks=4)
    peers = ["contrail", "contrail_put"]
    yield Workload("append.staged", "append 10 M ticks by 4 writers, staged, one commit", peers, does)


def spark():
    """Spark over the service and the directory, and by a first source over the stock Flight server and its file.

    A session each: one round, calls until Java is warm.
    """
    every = "select count(*), max(ts), max(symbol), avg(price), sum(size), max(flag), max(venue) from {table}"
    average = "select sum(n), max(p) from (select count(*) n, avg(price) p from {table} group by symbol)"
    cases = {
        "full": ("every column of 10 M ticks", every, None, "rows", 6),
        "average": ("the average price by symbol of 10 M ticks", average, ["symbol", "price"], "rows", 6),
        "count": ("count 10 M ticks", "select count(*) from {table}", ["flag"], "rows", 15),
        "entity": ("one symbol of 1,000", every + " where symbol = 'S0500'", None, "entity", 7),
    }
    for name, (title, sql, columns, answer, repeat) in cases.items():
        does = operation("spark", "ordered", sql=sql, columns=columns, answer=answer, repeat=repeat)
        peers = ["contrail", *(["contrail_listing"] if name == "count" else []), "spark_delta"]
        peers += ["spark_first", "spark_parquet"]
        yield Workload(f"spark.{name}", f"Spark: {title}", peers, does, reads="ordered", once=True)


def small_appends(seconds: float):
    peers = [*SERVERS, "duckdb", "deltalake", "ttf", "timelake"]
    for rows in (1, 100, 1_000):
        for clients in (1, 8):
            does = operation("small", "small", rows=rows, clients=clients, seconds=seconds, entities=10)
            title = f"append {rows:,} row{'s' * (rows > 1)} a time, {clients} client{'s' * (clients > 1)}"
            yield Workload(f"small.{rows}x{clients}", title, peers, does, key="per_second", once=rows == 100)
    does = operation("small", "small", rows=1, clients=16, seconds=seconds, entities=10)
    yield Workload("small.1x16", "append 1 row a time, 16 clients", SERVERS, does, key="per_second")


def histories(steps: tuple[int, int], seconds: float):
    """Growing tables; the second step is far beyond what two of the peers reach in the time."""
    peers, have = ["contrail", "timelake", "ttf", "deltalake"], 0
    for want in steps:
        does = operation("grow", "small", have=have, want=want, seconds=seconds)
        yield Workload(
            f"commit.{want}",
            f"append 1 row at {want:,} versions",
            peers,
            does,
            keep="versions",
            reads="versions" if have else None,
            once=True,
        )
        opened = operation("cold", "small")
        yield Workload(f"open.{want}", f"open a table of {want:,} versions, cold", peers, opened, reads="versions")
        peers, have = peers[:2], want


def updates():
    peers, narrow = ["contrail", "deltalake", "ttf"], ["contrail", "duckdb", "deltalake", "polars", "ttf", "timelake"]
    cases = {
        "narrow": ("65,536 of 262,144 rows in 4 files", narrow, "narrow", "fix", 4, ["v0"]),
        "payload": ("262,144 rows of 4 KiB in 4 files", peers, "payload", "fix", 4, ["payload"]),
        "one": ("1 row of 1 M", peers, "ten", "one", 1, ["v3"]),
        "fifty": ("50,000 rows of 1 M", peers, "ten", "fifty", 1, ["v3"]),
    }
    for name, (title, peers, dataset, fix, parts, columns) in cases.items():
        does, laid = operation("update", dataset, fix=fix, columns=columns), operation("fill", dataset, parts=parts)
        yield Workload(f"update.{name}", f"update {title}", peers, does, before=(laid,))
    yield Workload(
        "overwrite",
        "append 11,000 rows of which 10,000 replace rows of 1 M",
        ["contrail", "deltalake", "timelake"],
        operation("overwrite", "overwrite", fix="fix"),
        before=(operation("fill", "overwrite", parts=1),),
    )


def rewrites(files: int):
    cases = {
        "ticks": ("10 M ticks in no order, in 10 files that overlap", "shuffled", 10),
        "files": (f"1 M rows in {files:,} files", "ten", files),
    }
    for name, (title, dataset, parts) in cases.items():
        yield Workload(
            f"optimize.{name}",
            f"optimize {title}",
            ["contrail", "deltalake", "deltalake_z", "timelake"],
            operation("optimize", dataset),
            before=(operation("fill", dataset, parts=parts),),
            keep="optimized" if name == "files" else None,
            once=True,
        )
    title = f"vacuum the {files:,} files that this has replaced"
    peers = ["contrail", "deltalake", "timelake"]
    yield Workload("vacuum.files", title, peers, operation("vacuum", "ten"), reads="optimized", once=True)


def newest_and_missing():
    readers = ["contrail", "duckdb", "duckdb_sorted", "ttf", "timelake"]
    title = "newest row of each of 1,000 entities in 10 M rows"
    yield Workload("latest.1000", title, readers, operation("latest", "ordered", repeat=4), reads="ordered")
    peers = ["contrail", "duckdb", "ttf", "timelake"]
    filled = operation("append", "many")
    yield Workload("append.many", "append 1 M rows of 100,000 entities", peers, filled, keep="many", once=True)
    title = "newest row of each of 100,000 entities in 1 M rows"
    yield Workload("latest.100000", title, peers, operation("latest", "many", repeat=4), reads="many")
    filled = operation("append", "gaps")
    peers = ["contrail", "duckdb"]
    yield Workload("append.gaps", "append 10 M rows of 10,000 entities", peers, filled, keep="gaps", once=True)
    title = "every gap of 10,000 entities in 10,000 minutes"
    yield Workload("gaps", title, peers, operation("gaps", "gaps", repeat=2), reads="gaps")


def entities(seconds: float):
    for count in (10, 1_000, 100_000):
        dataset = f"entities{count}"
        yield Workload(
            f"into.{count}",
            f"append 1 row to a table of {count:,} entities",
            ["contrail", "ttf", "timelake"],
            operation("small", dataset, rows=1, clients=1, seconds=seconds, entities=count),
            before=(operation("fill", dataset, parts=1),),
            key="per_second",
        )


def plan(quick: bool) -> list[Workload]:
    seconds, steps, patience = (0.3, (100, 500), 3.0) if quick else (0.8, (2_000, 10_000), 20.0)
    return [
        *appends(),
        *scans(),
        *engines(),
        *spark(),
        *small_appends(seconds),
        *histories(steps, patience),
        *updates(),
        *rewrites(100 if quick else 1_000),
        *newest_and_missing(),
        *entities(seconds),
    ]
