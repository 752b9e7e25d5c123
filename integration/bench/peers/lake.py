"""timelake, in process: a library over Iceberg tables."""

from timelake import ConflictError, Lake

from .base import Peer, where

ATTEMPTS = 10_000


class Timelake(Peer):
    def __init__(self, folder):
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.lake, self.handles = Lake(str(folder)), {}

    def path(self, spec):
        return self.folder / "default" / spec.name

    def _table(self, spec):
        if spec.name not in self.handles:
            self.handles[spec.name] = self.lake.table(spec.name)
        return self.handles[spec.name]

    def create(self, spec, schema):
        self.handles[spec.name] = self.lake.create_table(
            spec.name, schema, time_column=spec.index, series_key=[spec.entity], ingest_time=False
        )

    def append(self, spec, rows):
        for _ in range(ATTEMPTS):
            try:
                return self._table(spec).append(rows)
            except ConflictError:  # it rebases by itself, up to ten times
                continue
        raise RuntimeError(f"lost the race {ATTEMPTS} times")

    overwrite = append  # within a second its granularity knows nothing of: only equal times replace each other

    def update(self, spec, source, columns):
        self.append(spec, source)

    def optimize(self, spec):
        self._table(spec).maintain(compact=True, retention=False, expire=False, rollups=False)

    def ripen(self, spec):
        self._table(spec).set_properties({"snapshot-retention": "0s", "min-snapshots": "1"})

    def vacuum(self, spec):
        self._table(spec).maintain(compact=False, retention=False, expire=True, rollups=False)

    def live(self, spec):
        return self._table(spec).info()["files"]

    def open(self, spec):
        Lake(str(self.folder)).table(spec.name)

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        condition = where(spec, entity, start, end)
        return self.lake.sql(f"SELECT {', '.join(columns or ['*'])} FROM {spec.name}{condition}").to_batches()

    def latest(self, spec):
        return self.lake.latest(spec.name)
