"""From Spark into a table and back: a job that may run twice, and reads that fetch only what they need.

spark-submit --py-files contrail_spark.zip batch.py grpc://127.0.0.1:8815
"""

import json
import sys

import contrail_spark
import pyarrow.flight as fl
from pyspark.sql import SparkSession

DEFINITION = {
    "table": "example.meters",
    "index_column": "ts",
    "index_granularity": "1h",
    "entity_columns": ["meter"],
    "columns": [
        {"name": "meter", "type": "int64", "nullable": False},
        {"name": "ts", "type": "timestamp[us, tz=UTC]", "nullable": False},
        {"name": "kwh", "type": "double"},
    ],
}
READINGS = """
    select meter, timestamp'2026-01-01 00:00:00Z' + make_interval(0, 0, 0, 0, hour) ts, hour * 0.25D kwh
    from range(50) as meters(meter) cross join range(48) as hours(hour)
"""


def main(spark: SparkSession, location: str) -> None:
    next(fl.connect(location).do_action(fl.Action("create_table", json.dumps(DEFINITION).encode())))
    contrail_spark.register(spark)

    readings = spark.sql(READINGS)
    (
        readings.write.format("contrail")
        .mode("append")
        .option("location", location)
        .option("table", "example.meters")
        .option("request_id", "meters-2026-01")
        .save()
    )

    meters = spark.read.format("contrail").option("location", location).load("example.meters")
    one = meters.where("meter = 7 and ts >= '2026-01-02'")
    print(one.count(), "readings of one meter, which the service picked out")

    narrow = spark.read.format("contrail").option("location", location).option("columns", "meter,kwh")
    print(narrow.load("example.meters").groupBy("meter").avg("kwh").count(), "averages, from two columns")

    files = spark.read.format("contrail").option("location", location).option("op", "files").load("example.meters")
    print(files.agg({"rows": "sum"}).first()[0], "rows, counted without reading one")

    newest = spark.read.format("contrail").option("location", location).option("op", "latest").load("example.meters")
    print(newest.where("kwh > 11").count(), "newest rows")


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), sys.argv[1])
