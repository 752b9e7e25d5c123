"""Contrail's tables as a data source of Spark: `spark.read.format("contrail")`, after `register(spark)`.

Needs PySpark 4.1 or later. The page integration/docs/spark.md tells the options, what is pushed down, and how the
package reaches the workers.
"""

from pyspark.sql import SparkSession

from contrail_spark._source import ContrailDataSource

__all__ = ["ContrailDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make the format "contrail" known to the session, and let Spark hand filters to data sources written in Python."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(ContrailDataSource)
