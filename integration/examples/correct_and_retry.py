"""Correct values that were read before; when somebody else was faster, read again and retry.

Run: python correct_and_retry.py grpc://127.0.0.1:8815
"""

import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

TABLE = "example.scales"
# gRPC aligns no buffer, of which Arrow's compute functions would warn.
ALIGNED = fl.FlightCallOptions(read_options=pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific))


def put(client: fl.FlightClient, command: dict, rows: pa.Table) -> dict:
    writer, reader = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command)), rows.schema)
    try:
        writer.write_table(rows)
        writer.done_writing()
        receipt = reader.read()
    finally:
        writer.close()  # raises what the server refused
    return json.loads(receipt.to_pybytes())


def correct(client: fl.FlightClient, meanwhile=lambda: None) -> dict:
    """Halve all weights above 100. An update names the version that its values come from."""
    while True:
        info = client.get_flight_info(fl.FlightDescriptor.for_command(json.dumps({"op": "scan", "table": TABLE})))
        version = json.loads(info.app_metadata)["version"]
        rows = client.do_get(info.endpoints[0].ticket, ALIGNED).read_all().filter(pc.field("kg") > 100)
        rows = rows.set_column(rows.schema.get_field_index("kg"), "kg", pc.divide(rows["kg"], 2))
        meanwhile()
        command = {"op": "update_rows", "table": TABLE, "columns": ["kg"], "expected_version": version}
        try:
            return put(client, command, rows)
        except fl.FlightError as error:
            told = json.loads(error.extra_info)
            if told["token"] != "VERSION_CONFLICT":
                raise
            print(f"version {told['expected']} is {told['found']} by now: once more")


def main(uri: str) -> None:
    client = fl.connect(uri)
    create = {"table": TABLE, "index_column": "n", "index_type": "int64", "index_granularity": 1}
    list(client.do_action(fl.Action("create_table", json.dumps(create).encode())))
    put(client, {"op": "append", "table": TABLE}, pa.table({"n": [1, 2, 3], "kg": [70.0, 160.0, 300.0]}))

    others = [pa.table({"n": [4], "kg": [120.0]})]  # what somebody appends between our reading and our writing

    def meanwhile():
        if others:
            put(client, {"op": "append", "table": TABLE}, others.pop())

    report = correct(client, meanwhile)
    print(f"version {report['committed_version']} corrects {report['rows_updated']} rows")
    rows = client.do_get(fl.Ticket(json.dumps({"op": "scan", "table": TABLE}))).read_all()
    assert rows["kg"].to_pylist() == [70.0, 80.0, 150.0, 60.0]


if __name__ == "__main__":
    main(sys.argv[1])
