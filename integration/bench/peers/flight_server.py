"""A plain pyarrow.flight server over folders of Parquet files: python flight_server.py FOLDER (prints its port)."""

import json
import os
import pathlib
import sys
import uuid

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.flight as fl
import pyarrow.parquet as pq

GROUP_ROWS = 1_000_000


def sync(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


class Server(fl.FlightServerBase):
    def __init__(self, folder: str):
        super().__init__("grpc://127.0.0.1:0")
        self.folder = pathlib.Path(folder)

    def do_put(self, context, descriptor, reader, writer):
        table = self.folder / json.loads(descriptor.command)["table"]
        name = uuid.uuid4().hex
        arriving = table / f"_{name}"  # a dataset skips names that begin so
        with pq.ParquetWriter(arriving, reader.schema) as out:
            held, rows = [], 0
            for chunk in reader:
                held.append(chunk.data)
                rows += chunk.data.num_rows
                if rows >= GROUP_ROWS:
                    out.write_table(pa.Table.from_batches(held))
                    held, rows = [], 0
            if held:
                out.write_table(pa.Table.from_batches(held))
        sync(arriving)
        arriving.rename(table / f"{name}.parquet")
        sync(table)
        writer.write(b"{}")

    def do_get(self, context, ticket):
        wanted = json.loads(ticket.ticket)
        files = ds.dataset(self.folder / wanted["table"], format="parquet")
        rows = None
        if "equal" in wanted:
            name, value = wanted["equal"]
            rows = ds.field(name) == value
        if "range" in wanted:
            name, start, end = wanted["range"]
            kind = files.schema.field(name).type
            rows = (ds.field(name) >= pa.scalar(start, kind)) & (ds.field(name) < pa.scalar(end, kind))
        scanner = files.scanner(columns=wanted["columns"], filter=rows, batch_size=65_536)
        return fl.RecordBatchStream(scanner.to_reader())


if __name__ == "__main__":
    server = Server(sys.argv[1])
    print(server.port, flush=True)
    server.serve()
