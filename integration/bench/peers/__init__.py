"""The peers by name. To add one: subclass `base.Peer` in a file, describe it here, name it in `workloads.py`."""

import dataclasses
import importlib
import pathlib

from .base import NotOffered, Peer


@dataclasses.dataclass(frozen=True)
class About:
    """What is known of a peer without importing it, so that one library's pages never count as another's memory."""

    module: str
    cls: str
    title: str
    use: str  # how it is used here
    durable: str  # what has reached the disk when a write returns
    reads_of: str | None = None  # a peer that only reads names the peer whose tables it reads


PEERS = {
    "contrail": About(
        "contrail",
        "Contrail",
        "Contrail",
        "`bin/flightsrv` on loopback, pyarrow client; rows sorted and checked for duplicates; scans `order: unordered`",
        "data and commit fsynced",
    ),
    "contrail_sorted": About(
        "contrail",
        "Sorted",
        "Contrail, sorted",
        "the same tables, scans in the default order: by entity, then index",
        "–",
        reads_of="contrail",
    ),
    "contrail_files": About(
        "contrail",
        "Files",
        "DuckDB on Contrail's files",
        "`read_parquet` of the list that `contrail_dataset.files` gives: the same tables, the service bypassed",
        "–",
        reads_of="contrail",
    ),
    "spark_delta": About(
        "contrail",
        "Directory",
        "Spark on Contrail's directory",
        "delta-spark on two cores: the same tables, the service bypassed; beside it `contrail_spark`, columns named",
        "–",
        reads_of="contrail",
    ),
    "spark_first": About(
        "flight",
        "SparkFirst",
        "Spark over the stock Flight server",
        "a Python data source of few lines, four partitions, columns named, nothing pushed down",
        "–",
        reads_of="stock_flight",
    ),
    "spark_parquet": About(
        "flight",
        "SparkParquet",
        "Spark on the stock server's Parquet file",
        "the same rows, no server",
        "–",
        reads_of="stock_flight",
    ),
    "contrail_listing": About(
        "contrail",
        "Listing",
        "Contrail's list of files",
        "the rows of each file as the service tells them (`op` `files`), summed up by Spark",
        "–",
        reads_of="contrail",
    ),
    "contrail_put": About(
        "contrail",
        "OnePut",
        "Contrail, one DoPut",
        "all rows in one stream instead of staged parts",
        "data and commit fsynced",
    ),
    "stock_flight": About(
        "flight",
        "StockFlight",
        "stock Go Flight server",
        "arrow-go's Flight and pqarrow as they come, own process: a put is one Parquet file (snappy), full reads only",
        "file and folder fsynced",
    ),
    "python_flight": About(
        "flight",
        "PythonFlight",
        "Python Flight server",
        "pyarrow.flight in Python, own process: a put is one Parquet file (pyarrow's defaults), a get a dataset scan",
        "file and folder fsynced",
    ),
    "duckdb": About(
        "duck",
        "DuckDB",
        "DuckDB",
        "in process; `COPY … TO` Parquet (snappy) in the order of arrival; a folder of files: no commits, no checks",
        "nothing synced",
    ),
    "duckdb_sorted": About(
        "duck", "DuckDBSorted", "DuckDB ORDER BY", "the same with `ORDER BY` entity and index", "nothing synced"
    ),
    "deltalake": About(
        "delta",
        "Deltalake",
        "deltalake",
        "in process; `write_deltalake` (snappy) in the order of arrival, a Delta commit, no checks; changes by `merge`",
        "nothing synced",
    ),
    "deltalake_z": About(
        "delta",
        "DeltalakeSorted",
        "deltalake z-order",
        "the same, rewritten by `optimize.z_order` over entity and index",
        "nothing synced",
    ),
    "polars": About(
        "frames",
        "Polars",
        "Polars",
        "in process; `sink_parquet` (zstd) sorted by entity and index; a folder of files: no commits, no checks",
        "nothing synced",
    ),
    "ttf": About(
        "ttf",
        "TimeseriesTableFormat",
        "timeseries-table-format",
        "in process; refuses a second row per entity and interval (zstd); a lost race is retried by the caller",
        "files fsynced, folders not",
    ),
    "timelake": About(
        "lake",
        "Timelake",
        "timelake",
        "in process; sorts and dedups each append (zstd); an update appends whole rows, of which the last wins on read",
        "nothing synced",
    ),
}


def make(name: str, folder: pathlib.Path) -> Peer:
    about = PEERS[name]
    return getattr(importlib.import_module(f"{__name__}.{about.module}"), about.cls)(folder)


__all__ = ["PEERS", "About", "NotOffered", "Peer", "make"]
