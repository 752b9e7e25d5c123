"""DuckDB in process. A table is a folder of Parquet files, one an append: no commits, no isolation, no check. It is a
yardstick for speed, not an equal."""

import uuid

import duckdb

from .base import Peer, where


class DuckDB(Peer):
    order = ""

    def __init__(self, folder):
        super().__init__(folder)
        self.link = duckdb.connect()
        self.link.execute("SET TimeZone = 'UTC'")

    def files(self, spec) -> str:
        return f"read_parquet('{self.path(spec)}/*.parquet')"

    def create(self, spec, schema):
        self.path(spec).mkdir(parents=True)

    def append(self, spec, rows):
        order = self.order.format(spec=spec)
        target = self.path(spec) / f"{uuid.uuid4().hex}.parquet"
        self.link.register("arriving", rows)
        self.link.execute(f"COPY (SELECT * FROM arriving{order}) TO '{target}' (FORMAT parquet)")

    def update(self, spec, source, columns):
        """One new file of the whole table instead of the old ones."""
        old = list(self.path(spec).glob("*.parquet"))
        target = self.path(spec) / f"{uuid.uuid4().hex}.parquet"
        self.link.register("source", source)
        new = ", ".join(f"CASE WHEN s.{spec.entity} IS NULL THEN t.{c} ELSE s.{c} END AS {c}" for c in columns)
        key = f"t.{spec.entity} = s.{spec.entity} AND t.{spec.index} = s.{spec.index}"
        rows = f"SELECT t.* REPLACE ({new}) FROM {self.files(spec)} t LEFT JOIN source s ON {key}"
        self.link.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet)")
        for file in old:
            file.unlink()

    def open(self, spec):
        self.link.execute(f"SELECT count(*) FROM {self.files(spec)}").fetchone()

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        condition = where(spec, entity, start, end, "TIMESTAMPTZ")
        query = f"SELECT {', '.join(columns or ['*'])} FROM {self.files(spec)}{condition}"
        return self.link.execute(query).to_arrow_reader(122_880)

    def query(self, spec, sql):
        return self.link.execute(sql.format(table=self.files(spec))).fetchone()

    def latest(self, spec):
        newest = f"row_number() OVER (PARTITION BY {spec.entity} ORDER BY {spec.index} DESC) = 1"
        return self.link.execute(f"SELECT * FROM {self.files(spec)} QUALIFY {newest}").to_arrow_table()

    def gaps(self, spec, start, end):
        """Neighbours by a window; before the first and after the last row by a row of its own at either end."""
        first, last = start // 60_000_000, end // 60_000_000  # the table's granularity is a minute
        rows = f"SELECT {spec.entity} entity, epoch_us({spec.index}) // 60000000 AS minute FROM {self.files(spec)}"
        ends = f"SELECT entity, unnest([{first - 1}, {last}]) FROM (SELECT DISTINCT entity FROM seen)"
        return self.link.execute(
            f"WITH seen AS ({rows}), bounded AS (FROM seen UNION ALL {ends}),"
            " pairs AS (SELECT entity, minute + 1 AS free,"
            " lead(minute) OVER (PARTITION BY entity ORDER BY minute) AS taken FROM bounded)"
            " SELECT entity, make_timestamptz(free * 60000000) AS start, make_timestamptz(taken * 60000000) AS end,"
            " taken - free AS intervals FROM pairs WHERE taken > free"
        ).to_arrow_table()


class DuckDBSorted(DuckDB):
    order = " ORDER BY {spec.entity}, {spec.index}"
