"""Spark in a session of its own, over the service or over the directory of the same table."""

import sys

import service
import spark_session

from .base import NotOffered

PACKAGE = service.ROOT / "integration" / "spark"


class Spark:
    """A session, and the table as it sees it."""

    def __init__(self):
        if not spark_session.offered():
            raise NotOffered("Java or Maven is missing here")
        sys.path.insert(0, str(PACKAGE))
        self.session = spark_session.make(PACKAGE)
        self.java = self.session.sparkContext._gateway.proc

    def service(self, location: str, table: str, columns=None, **options: str) -> None:
        """Look at the table through contrail_spark."""
        import contrail_spark

        contrail_spark.register(self.session)
        self._load("contrail", location, table, columns, **options)

    def directory(self, path) -> None:
        """Look at the table through delta-spark."""
        self.table = self.session.read.format("delta").load(str(path))

    def first_source(self, location: str, table: str, columns=None) -> None:
        """Look at a table of the stock Flight server through a source of few lines."""
        from .first_source import FirstSource

        self.session.dataSource.register(FirstSource)
        self._load("first", location, table, columns)

    def parquet(self, path) -> None:
        """Look at Parquet files."""
        self.table = self.session.read.parquet(str(path))

    def _load(self, source: str, location: str, table: str, columns, **options: str) -> None:
        if columns:
            options["columns"] = ",".join(columns)
        self.table = self.session.read.format(source).option("location", location).options(**options).load(table)

    def ask(self, sql: str):
        return self.session.sql(sql, table=self.table).collect()[0]

    def stop(self) -> None:
        self.session.stop()
        self.java.kill()
