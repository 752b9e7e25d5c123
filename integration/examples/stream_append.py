"""Append a stream whose length nobody knows before its end; a broken one leaves nothing behind.

Run: python stream_append.py grpc://127.0.0.1:8815
"""

import json
import sys

import pyarrow as pa
import pyarrow.flight as fl

SCHEMA = pa.schema([("sensor", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("value", pa.float64())])


def readings(batches: int):
    """Batches as they come from somewhere; here from arithmetic."""
    for number in range(batches):
        seconds = range(number * 1000, number * 1000 + 1000)
        at = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us", tz="UTC"))
        yield pa.record_batch([[7] * 1000, at, [second / 10 for second in seconds]], schema=SCHEMA)


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {
        "table": "example.stream",
        "index_column": "at",
        "index_type": "timestamp",
        "index_granularity": "1s",
        "entity_columns": ["sensor"],
    }
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))

    command = {"op": "append", "table": "example.stream", "end": "marker"}
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), SCHEMA)
    with writer:
        rows = 0
        for batch in readings(5):
            writer.write_batch(batch)
            rows += batch.num_rows
        # Without this message the server takes the stream for a broken one and commits nothing.
        writer.write_metadata(json.dumps({"commit": True, "rows": rows}).encode())
        writer.done_writing()
        report = json.loads(reader.read().to_pybytes())
    print(f"version {report['committed_version']} has {report['rows']} rows more")


if __name__ == "__main__":
    main(sys.argv[1])
