"""Ask which hours of a day are missing, and fill just those.

Run: python backfill_gaps.py grpc://127.0.0.1:8815
"""

import datetime
import json
import sys

import pyarrow as pa
import pyarrow.flight as fl

HOUR = datetime.timedelta(hours=1)
DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def append(client: fl.FlightClient, rows: pa.Table) -> None:
    command = {"op": "append", "table": "example.meters", "rows": rows.num_rows}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        reader.read()


def fetch(meter: str, start: datetime.datetime, end: datetime.datetime) -> pa.Table:
    """What the source has of a meter; here a reading an hour."""
    at = [start + HOUR * hour for hour in range((end - start) // HOUR)]
    return pa.table(
        {"meter": [meter] * len(at), "at": pa.array(at, pa.timestamp("us", tz="UTC")), "kwh": [t.hour / 2 for t in at]}
    )


def gaps(client: fl.FlightClient) -> list[dict]:
    request = {
        "op": "coverage",
        "table": "example.meters",
        "kind": "missing",
        "entities": [{"meter": "m1"}, {"meter": "m2"}],
        "start": DAY.isoformat(),
        "end": (DAY + 24 * HOUR).isoformat(),
    }
    return client.do_get(fl.Ticket(json.dumps(request))).read_all().to_pylist()


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {
        "table": "example.meters",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1h",
        "entity_columns": ["meter"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))
    append(client, fetch("m1", DAY, DAY + 6 * HOUR))
    append(client, fetch("m1", DAY + 9 * HOUR, DAY + 20 * HOUR))

    for gap in gaps(client):  # m2 has no row yet, so it misses the whole day
        print(f"{gap['meter']} misses {gap['intervals']} hours from {gap['start']:%H:%M}")
        append(client, fetch(gap["meter"], gap["start"], gap["end"]))
    assert gaps(client) == []


if __name__ == "__main__":
    main(sys.argv[1])
