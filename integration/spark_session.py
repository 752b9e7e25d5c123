"""A Spark session on two cores with Delta's jars, for the tests and the benchmark."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
JARS = HERE / ".jars"


def make(package: pathlib.Path):
    """Start Spark, whose workers import from a folder or wheel."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(package)}
    session = (
        SparkSession.builder.master("local[2,3]")  # two cores, and three attempts at a task
        .appName("contrail")
        .config("spark.driver.memory", "2g")
        .config("spark.jars", ",".join(str(jar) for jar in fetch_jars()))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.python.authenticate.socketTimeout", "120s")  # a busy machine starts workers slowly
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def stream(run):
    """Run something that streams, again when Spark has given up a source before it began.

    Each source is a process of Python, for whose start Spark waits ten seconds. No setting changes that, and on a busy
    machine it is too little.
    """
    from pyspark.errors import StreamingQueryException

    for _ in range(9):
        try:
            return run()
        except StreamingQueryException as error:
            if "Python worker failed to connect back" not in str(error):
                raise
    return run()


def offered() -> bool:
    """Whether this machine can run Spark. CI must: there everything that is missing is a failure."""
    return bool(os.environ.get("CI")) or bool(shutil.which("java") and shutil.which("mvn"))


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
    """The wheel of contrail_spark, made in a folder without the network."""
    source = shutil.copytree(HERE / "spark", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(source)], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def fetch_jars() -> list[pathlib.Path]:
    """Delta's jars, once, into integration/.jars; Spark brings all others itself."""
    if not list(JARS.glob("delta-spark_*.jar")):
        command = ["mvn", "-q", "-B", "-f", str(HERE / "spark" / "pom.xml"), "dependency:copy-dependencies"]
        command += ["-DincludeGroupIds=io.delta,io.unitycatalog", f"-DoutputDirectory={JARS}"]
        for pause in (10, 60, None):  # the registry may not answer each time
            if subprocess.run(command, check=pause is None).returncode == 0:
                break
            time.sleep(pause)
    return sorted(JARS.glob("*.jar"))
