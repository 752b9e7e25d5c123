"""The data source as Spark knows it: what it makes on the driver for a read, a write and the two kinds of stream."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from contrail_spark._flight import Client
from contrail_spark._options import Options
from contrail_spark._read import PushingReader, Reader
from contrail_spark._stream import StreamReader
from contrail_spark._types import spark_schema
from contrail_spark._write import StreamWriter, Writer


class ContrailDataSource(DataSource):
    """A table of a Contrail service."""

    @classmethod
    def name(cls) -> str:
        return "contrail"

    def schema(self) -> StructType:
        options = Options(self.options)
        with Client(options.connection) as client:
            schema = client.schema(options.described())
        if not schema.names:
            raise ValueError(f"the table {options.table} has no columns yet: nothing was appended to it")
        return spark_schema(schema)

    def reader(self, schema: StructType) -> Reader:
        options = Options(self.options)
        return (PushingReader if options.pushdown else Reader)(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        if overwrite:
            raise ValueError(
                'mode("overwrite") would delete a table that others read; use mode("append"). A table created with'
                ' "uniqueness": "overwrite" replaces rows of equal keys, and update_rows corrects values'
            )
        return Writer(Options(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(Options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        if overwrite:
            raise ValueError('the output mode complete would replace the table; use outputMode("append")')
        return StreamWriter(Options(self.options), schema)
