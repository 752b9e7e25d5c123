"""deltalake (delta-rs), in process."""

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

from .base import Peer, utc


class Deltalake(Peer):
    def __init__(self, folder):
        super().__init__(folder)
        self.handles = {}

    def _table(self, spec):
        if spec.name not in self.handles:
            self.handles[spec.name] = deltalake.DeltaTable(self.path(spec))
        return self.handles[spec.name]

    def create(self, spec, schema):
        self.path(spec).mkdir(parents=True)
        self.handles[spec.name] = deltalake.DeltaTable.create(self.path(spec), schema=schema)

    def append(self, spec, rows):
        # A handle is committed on top of, without loading the log again. Of eight clients at once some would lose an
        # append with the default of 15 retries.
        retries = deltalake.CommitProperties(max_commit_retries=1000)
        deltalake.write_deltalake(self._table(spec), rows, mode="append", commit_properties=retries)

    def _merge(self, spec, source):
        same = f"t.{spec.entity} = s.{spec.entity} AND t.{spec.index} = s.{spec.index}"
        return self._table(spec).merge(source, predicate=same, source_alias="s", target_alias="t")

    def update(self, spec, source, columns):
        self._merge(spec, source).when_matched_update({c: f"s.{c}" for c in columns}).execute()

    def overwrite(self, spec, rows):
        self._merge(spec, rows).when_matched_update_all().when_not_matched_insert_all().execute()

    def optimize(self, spec):
        self._table(spec).optimize.compact()

    def ripen(self, spec):
        self._table(spec)

    def vacuum(self, spec):
        self._table(spec).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def live(self, spec):
        return len(self._table(spec).file_uris())

    def open(self, spec):
        deltalake.DeltaTable(self.path(spec)).version()

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        wanted = None
        if entity is not None:
            wanted = ds.field(spec.entity) == entity
        if start is not None:
            kind = pa.timestamp("us", "UTC")
            low, high = pa.scalar(utc(start), kind), pa.scalar(utc(end), kind)
            wanted = (ds.field(spec.index) >= low) & (ds.field(spec.index) < high)
        return self._table(spec).to_pyarrow_dataset().scanner(columns=columns, filter=wanted).to_reader()


class DeltalakeSorted(Deltalake):
    """Brings the rows into an order by entity and index at once, on a curve."""

    def optimize(self, spec):
        self._table(spec).optimize.z_order([spec.entity, spec.index])
