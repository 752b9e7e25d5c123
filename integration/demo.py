"""The demo behind `make demo`: a year of weather through a real server, and the same table without the server."""

import pathlib
import tempfile

import pyarrow.compute as pc
import pyarrow.flight as fl
import pyarrow.parquet as pq

import engines
import service
from client import Client, fields


def step(text: str) -> None:
    print(f"\n== {text}", flush=True)


def show(rows) -> None:
    """The first and last rows of a table, as pandas prints them."""
    print(rows.to_pandas().to_string(max_rows=6, index=False), flush=True)


def run(warehouse: pathlib.Path) -> None:
    weather = pq.read_table(service.ROOT / "integration/testdata/weather.parquet")
    month = pc.month(weather["time_hour"])
    months = [weather.filter(pc.equal(month, number)) for number in range(1, 13)]

    step("start a server on a free port")
    with service.Service(warehouse) as server, Client(server.uri) as client:
        print(f"{server.uri}, warehouse {warehouse}", client.act("server_info"))

        step("create the table: one row per airport and hour")
        made = client.act(
            "create_table",
            table="weather",
            index_column="time_hour",
            index_granularity="1h",
            entity_columns=["origin"],
            columns=[{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in weather.schema],
        )
        print(f"{made['table']} version {made['version']}, format {made['format_version']}, id {made['table_id']}")

        step("append the year, month by month")
        for number, rows in enumerate(months, 1):
            report = client.append("weather", rows)
            files = ", ".join(f"{f['path']} ({f['bytes']} bytes)" for f in report["data_files"])
            print(f"month {number:2}: version {report['committed_version']:2}, {report['rows']} rows, {files}")

        step("send July again: refused, and nothing changes")
        try:
            client.append("weather", months[6])
        except fl.FlightError as error:
            print(str(error).split(". gRPC client debug context")[0])
            print("extra_info:", fields(error))
        told = client.act("describe_table", table="weather")
        print(f"still version {told['version']} with {told['rows']} rows in {told['files']} files")

        step("scan one airport for one week, three columns")
        week = client.read(
            "weather",
            columns=["time_hour", "temp", "wind_speed"],
            entities=[{"origin": "JFK"}],
            start="2013-07-01T00:00:00Z",
            end="2013-07-08T00:00:00Z",
        )
        show(week)
        print("the server's own count of what it read:", client.stats())
        whole = client.read("weather")

    step("the server is stopped; deltalake opens the table's directory")
    path = server.path("weather")
    table = engines.Deltalake().read(path)
    print(f"{path}: {table.num_rows} rows, the scan had {whole.num_rows}")

    step("DuckDB asks it for the mean temperature of each airport")
    duck = engines.DuckDB().connection
    show(
        duck.execute(
            f"SELECT origin, count(*), avg(temp) FROM delta_scan('{path}') GROUP BY 1 ORDER BY 1"
        ).to_arrow_table()
    )

    step("deltalake may not write it")
    try:
        engines.Deltalake().writes(path)["append"]()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    service.build()
    with tempfile.TemporaryDirectory() as folder:
        run(pathlib.Path(folder) / "warehouse")
