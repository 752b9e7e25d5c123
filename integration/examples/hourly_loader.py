"""A loader that may be started again at any time: each hour is there once.

Run: python hourly_loader.py grpc://127.0.0.1:8815
"""

import datetime
import json
import sys

import pyarrow as pa
import pyarrow.flight as fl


def load(client: fl.FlightClient, hour: datetime.datetime) -> dict:
    """Append the rows of one hour. The request id makes the repetition of an append its first one."""
    at = [hour + datetime.timedelta(minutes=minute) for minute in range(60)]
    rows = pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC")), "load": [minute / 60 for minute in range(60)]})
    command = {
        "op": "append",
        "table": "example.hourly",
        "rows": rows.num_rows,
        "request_id": f"hourly-{hour:%Y%m%dT%H}",
    }
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        return json.loads(reader.read().to_pybytes())


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {
        "table": "example.hourly",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1m",
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))

    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    for hours in (3, 5):  # the second run knows nothing of the first one
        for hour in range(hours):
            report = load(client, noon + datetime.timedelta(hours=hour))
            print(report["request_id"], "was there" if report["replayed"] else "is new")
    rows = client.do_get(fl.Ticket(json.dumps({"op": "scan", "table": "example.hourly"}))).read_all()
    assert rows.num_rows == 5 * 60


if __name__ == "__main__":
    main(sys.argv[1])
