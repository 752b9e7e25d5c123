"""timeseries-table-format, in process; read through its own SQL session."""

import time

from timeseries_table_format import ConflictError, Session, StorageError, TimeSeriesTable

from .base import Peer, where

ATTEMPTS = 10_000


class TimeseriesTableFormat(Peer):
    def __init__(self, folder):
        super().__init__(folder)
        self.handles, self.sessions = {}, {}

    def _table(self, spec):
        if spec.name not in self.handles:
            self.open(spec)
        return self.handles[spec.name]

    def _session(self, spec):
        if spec.name not in self.sessions:
            self.sessions[spec.name] = Session()
            self.sessions[spec.name].register_tstable("t", str(self.path(spec)))
        return self.sessions[spec.name]

    def create(self, spec, schema):
        self.path(spec).parent.mkdir(parents=True, exist_ok=True)
        self.handles[spec.name] = TimeSeriesTable.create(
            table_root=str(self.path(spec)),
            index_column=spec.index,
            index_type="timestamp",
            index_granularity=spec.granularity,
            entity_columns=[spec.entity],
            timezone="UTC",
        )

    def append(self, spec, rows):
        for _ in range(ATTEMPTS):
            try:
                return self._table(spec).append(rows)
            except (ConflictError, StorageError):
                time.sleep(0.0005)
                self.open(spec)
        raise RuntimeError(f"lost the race {ATTEMPTS} times")

    def update(self, spec, source, columns):
        table = self._table(spec)
        rows = source.select([spec.entity, spec.index, *columns])
        table.update_rows(rows, columns=columns, expected_version=table.version())

    def open(self, spec):
        self.handles[spec.name] = TimeSeriesTable.open(str(self.path(spec)))

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        condition = where(spec, entity, start, end)
        return self._session(spec).sql_reader(f"SELECT {', '.join(columns or ['*'])} FROM t{condition}")

    def latest(self, spec):
        names = self._session(spec).sql("SELECT * FROM t LIMIT 0").column_names
        rest = ", ".join(f"last_value({c} ORDER BY {spec.index}) AS {c}" for c in names if c != spec.entity)
        return self._session(spec).sql(f"SELECT {spec.entity}, {rest} FROM t GROUP BY {spec.entity}")
