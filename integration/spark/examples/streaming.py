"""Rows that are appended to one table flow into another, each of them once.

spark-submit --py-files contrail_spark.zip streaming.py grpc://127.0.0.1:8815 /var/lib/checkpoints/alarms
"""

import json
import sys

import contrail_spark
import pyarrow as pa
import pyarrow.flight as fl
from pyspark.sql import SparkSession

COLUMNS = {"index_column": "ts", "index_granularity": "1s", "entity_columns": ["sensor"]}


def main(spark: SparkSession, location: str, checkpoint: str) -> None:
    prepare(location)
    contrail_spark.register(spark)

    readings = (
        spark.readStream.format("contrail")
        .option("location", location)
        .option("startingVersion", "1")
        .option("maxRowsPerBatch", "1000000")
        .load("example.readings")
    )
    query = (
        readings.where("value > 90")
        .writeStream.format("contrail")
        .option("location", location)
        .option("table", "example.alarms")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    alarms = spark.read.format("contrail").option("location", location).load("example.alarms")
    print(alarms.count(), "alarms")


def prepare(location: str) -> None:
    """Two tables, the first with a hundred rows."""
    client = fl.connect(location)
    rows = pa.table(
        {
            "sensor": pa.array(["a", "b"] * 50),
            "ts": pa.array([1_767_225_600 + i // 2 for i in range(100)], pa.timestamp("s", tz="UTC")),
            "value": pa.array(range(100), pa.float64()),
        }
    )
    columns = [{"name": field.name, "type": str(field.type)} for field in rows.schema]
    for table in ("example.readings", "example.alarms"):
        definition = {"table": table, "columns": columns} | COLUMNS
        next(client.do_action(fl.Action("create_table", json.dumps(definition).encode())))
    append = {"op": "append", "table": "example.readings", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(append)), rows.schema)
    writer.write_table(rows)
    writer.done_writing()
    reader.read()
    writer.close()


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), *sys.argv[1:3])
