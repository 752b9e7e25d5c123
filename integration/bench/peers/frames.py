"""Polars, in process, over Parquet files of its own."""

import uuid

import polars as pl

from .base import Peer, utc


class Polars(Peer):
    def _frame(self, spec):
        return pl.scan_parquet(self.path(spec) / "*.parquet")

    def create(self, spec, schema):
        self.path(spec).mkdir(parents=True)

    def append(self, spec, rows):
        frame = pl.from_arrow(rows).lazy().sort(spec.entity, spec.index)
        frame.sink_parquet(self.path(spec) / f"{uuid.uuid4().hex}.parquet")

    def update(self, spec, source, columns):
        """One new file of the whole table instead of the old ones."""
        old = list(self.path(spec).glob("*.parquet"))
        new = pl.from_arrow(source).lazy().select(spec.entity, spec.index, *columns)
        frame = self._frame(spec).update(new, on=[spec.entity, spec.index], include_nulls=True)
        frame.sink_parquet(self.path(spec) / f"{uuid.uuid4().hex}.parquet")
        for file in old:
            file.unlink()

    def open(self, spec):
        self._frame(spec).select(pl.len()).collect()

    def scan(self, spec, columns=None, entity=None, start=None, end=None):
        frame = self._frame(spec)
        if entity is not None:
            frame = frame.filter(pl.col(spec.entity) == entity)
        if start is not None:
            frame = frame.filter((pl.col(spec.index) >= utc(start)) & (pl.col(spec.index) < utc(end)))
        if columns:
            frame = frame.select(columns)
        return frame.collect(engine="streaming").to_arrow(compat_level=pl.CompatLevel.newest()).to_batches()
