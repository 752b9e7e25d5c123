"""The Spark data source that one would write first: over the stock Flight server, without anything pushed down."""

import json
import sys

import pyarrow.flight as fl
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

PARTS = 4
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import it


class FirstSource(DataSource):
    @classmethod
    def name(cls):
        return "first"

    def schema(self):
        with fl.connect(self.options["location"]) as link:
            reader = link.do_get(self.ticket())
            reader.cancel()
            return from_arrow_schema(reader.schema)

    def reader(self, schema):
        tickets = [self.ticket(part=n, parts=PARTS).serialize() for n in range(PARTS)]
        return FirstReader(self.options["location"], tickets)

    def ticket(self, **part):
        columns = self.options.get("columns")
        request = {"table": self.options["path"], "columns": columns.split(",") if columns else None}
        return fl.Ticket(json.dumps(request | part))


class FirstReader(DataSourceReader):
    def __init__(self, location, tickets):
        self.location, self.tickets = location, tickets

    def partitions(self):
        return [InputPartition(ticket) for ticket in self.tickets]

    def read(self, partition):
        with fl.connect(self.location) as link:
            for chunk in link.do_get(fl.Ticket.deserialize(partition.value)):
                yield chunk.data
