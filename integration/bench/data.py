"""The rows that every peer gets, and the answers that every peer must give, by numpy.

    python data.py FOLDER SCALE DATASET…      makes what is not there yet

Every dataset is an Arrow file and a JSON file of answers. Seeds are fixed: equal scales give equal bytes.
"""

import dataclasses
import json
import pathlib
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "python")]

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ticks

START = ticks.START
SECOND, MINUTE = 1_000_000, 60_000_000
TS = pa.timestamp("us", tz="UTC")
BATCH_ROWS = 65_536
ENTITY = "S0500"  # the one entity of the ticks that a workload asks for
RANGE = 0.01  # the share of the rows, in the middle of the time, that a workload asks for
MINUTES, BURST, BURSTS = 10_000, 100, 10  # gaps: of so many minutes an entity has so many bursts of so many


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a peer is told about a table."""

    name: str
    entity: str = "entity"
    granularity: str = "1s"
    uniqueness: str = "reject"
    index: str = "ts"


SPECS = {
    spec.name: spec
    for spec in (
        Spec("ordered", "symbol"),
        Spec("shuffled", "symbol"),
        Spec("sorted", "symbol"),
        Spec("wide"),
        Spec("narrow"),
        Spec("payload"),
        Spec("ten"),
        Spec("many"),
        Spec("gaps", granularity="1m"),
        Spec("overwrite", uniqueness="overwrite"),
        Spec("small"),
        Spec("entities10"),
        Spec("entities1000"),
        Spec("entities100000"),
    )
}


# -- rows ---------------------------------------------------------------------------------------------


def names(prefix: str, ids: np.ndarray, width: int = 6) -> pa.Array:
    """Texts prefix + id; of many rows each id's text is made once."""
    if len(ids) < 10_000:
        return pa.array([f"{prefix}{number:0{width}}" for number in ids], pa.string())
    texts = pa.array([f"{prefix}{number:0{width}}" for number in range(int(ids.max()) + 1)])
    return texts.take(pa.array(ids))


def keyed(rows: int, entities: int, columns: int = 2, seed: int = 10, first: int = 0) -> pa.Table:
    """`rows` rows in time order, one per entity and second in turn, with doubles v0, v1 …; row number `first` first."""
    number = np.arange(first, first + rows)
    chance = np.random.default_rng(seed)
    table = {
        "ts": pa.array(START + number // entities * SECOND + number % entities, TS),
        "entity": names("E", number % entities),
    }
    return pa.table(table | {f"v{column}": pa.array(chance.normal(column, 1, rows)) for column in range(columns)})


def small(rows: int, number: int, entities: int = 10) -> pa.Table:
    """The small append of that number: no two of them share an entity and second, nor one with `keyed` rows before."""
    return keyed(rows, entities, seed=number, first=10 * max(entities, 1_000) + number * rows)


def payload(rows: int, seed: int) -> pa.Table:
    """Random binaries of 4 KiB for 64 entities."""
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(4096))
    data = pa.py_buffer(np.random.default_rng(seed).bytes(rows * 4096))
    return keyed(rows, 64, 0).append_column("payload", pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]))


def bursts(entities: int) -> np.ndarray:
    """[entity, minute] → whether there is a row: a tenth of the minutes, in bursts."""
    chance = np.random.default_rng(15)
    blocks = np.argsort(chance.random((entities, MINUTES // BURST)), axis=1) < BURSTS
    return np.repeat(blocks, BURST, axis=1)


def gappy(entities: int) -> pa.Table:
    minute, entity = np.nonzero(bursts(entities).T)
    jitter = np.random.default_rng(16).integers(0, MINUTE, len(minute))
    ts = pa.array(START + minute * MINUTE + jitter, TS)
    return pa.table({"ts": ts, "entity": names("E", entity), "v0": pa.array(jitter / 7.0)})


# -- answers ------------------------------------------------------------------------------------------


def bits(column: pa.Array) -> np.ndarray:
    """A column as uint64: equal values give equal bits, whatever string or time type a peer hands out."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        coded = pc.dictionary_encode(column.cast(pa.large_string()))
        texts = np.array([zlib.crc32(text.encode()) for text in coded.dictionary.to_pylist()] or [0], np.uint64)
        out = texts[np.asarray(coded.indices.fill_null(0))]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        out = np.fromiter((zlib.crc32(value.as_buffer()) for value in column), np.uint64, len(column))
    elif pa.types.is_timestamp(kind):
        out = np.asarray(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).fill_null(0)).view(np.uint64)
    elif pa.types.is_floating(kind):
        out = np.asarray(column.fill_null(0.0)).view(np.uint64)
    else:
        out = np.asarray(column.cast(pa.int64()).fill_null(0)).view(np.uint64)
    return np.where(np.asarray(column.is_null()), np.uint64(0x9E3779B9), out)


def fingerprint(batches, columns: list[str]) -> list:
    """[rows, checksum]: a sum of hashes of whole rows, so the order is free but lost, doubled or mixed-up rows show."""
    rows, total = 0, 0
    for batch in batches:
        mixed = np.zeros(batch.num_rows, np.uint64)
        for name in columns:
            mixed = (mixed ^ bits(batch.column(name))) * np.uint64(0x9E3779B97F4A7C15)  # wraps around, as a hash may
            mixed ^= mixed >> np.uint64(29)
        rows, total = rows + batch.num_rows, total + int(mixed.sum(dtype=np.uint64))
    return [rows, f"{total & (1 << 64) - 1:016x}"]


def whole(table: pa.Table) -> list:
    return fingerprint(table.to_batches(), table.column_names)


def newest(table: pa.Table, spec: Spec) -> list:
    """The newest row of each entity."""
    ts = np.asarray(table[spec.index].cast(pa.int64()))
    entity = np.asarray(pc.dictionary_encode(table[spec.entity]).combine_chunks().indices)
    order = np.lexsort((ts, entity))
    last = order[np.append(entity[order][1:] != entity[order][:-1], True)]
    return whole(table.take(pa.array(last)))


def reads(table: pa.Table, spec: Spec, two: list[str]) -> dict:
    """What the scan workloads must find, and the range they ask for."""
    ts = table[spec.index].cast(pa.int64())
    middle = table.num_rows // 2
    start, end = ts[middle].as_py(), ts[middle + int(table.num_rows * RANGE)].as_py()
    inside = pc.and_(pc.greater_equal(ts, start), pc.less(ts, end))
    return {
        "start": start,
        "end": end,
        "range": whole(table.filter(inside)),
        "entity": whole(table.filter(pc.equal(table[spec.entity], ENTITY))),
        "two": fingerprint(table.to_batches(), two),
        "latest": newest(table, spec),
    }


def missing_runs(entities: int) -> list:
    """Every run of minutes without a row."""
    missing = ~bursts(entities)
    edges = np.diff(np.pad(missing, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    (entity, start), (_, end) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    runs = {"entity": names("E", entity), "intervals": pa.array(end - start)}
    runs |= {"start": pa.array(START + start * MINUTE, TS), "end": pa.array(START + end * MINUTE, TS)}
    return fingerprint(pa.table(runs).to_batches(), ["entity", "start", "end", "intervals"])


def changed(table: pa.Table, source: pa.Table, rows: np.ndarray, column: str) -> pa.Table:
    """The table with that column of those rows taken from the source."""
    values = table[column].to_numpy().copy()
    values[rows] = source[column].to_numpy()
    return table.set_column(table.column_names.index(column), column, pa.array(values))


def correction(table: pa.Table, rows: np.ndarray, column: str) -> pa.Table:
    """Those rows with new values in the column."""
    values = pa.array(np.random.default_rng(12).normal(9, 1, len(rows)))
    return table.take(pa.array(rows)).set_column(table.column_names.index(column), column, values)


# -- datasets: each gives its Arrow tables by name, and its answers ------------------------------------


def make_ticks(order: str, scale: float):
    rows = max(int(10_000 * scale), 10) * ticks.SYMBOLS
    table = ticks.make(rows, shuffled=order == "shuffled")
    if order == "sorted":
        table = table.sort_by([("symbol", "ascending"), ("ts", "ascending")])
    answers = {"rows": whole(table)}
    if order == "ordered":
        answers |= reads(table, SPECS[order], ["ts", "price"])
    return {order: table}, answers


def make_wide(scale: float):
    table = keyed(max(int(1_000_000 * scale), 1_000), 100, 50)
    return {"wide": table}, {"rows": whole(table), "two": fingerprint(table.to_batches(), ["ts", "v7"])}


def make_narrow(scale: float):
    rows = max(int(262_144 * scale), 1_024)
    table, hit = keyed(rows, 64), np.arange(0, rows, 4)
    source = correction(table, hit, "v0")
    return {"narrow": table, "narrow.fix": source}, {"fix": whole(changed(table, source, hit, "v0"))}


def make_payload(scale: float):
    rows = max(int(262_144 * scale), 1_024)
    source = payload(rows, 14)
    return {"payload": payload(rows, 13), "payload.fix": source}, {"fix": whole(source)}


def make_ten(scale: float):
    """A million rows of ten columns; corrections of one row and of 50,000."""
    rows = max(int(1_000_000 * scale), 2_000)
    table = keyed(rows, 1_000, 8)
    tables, answers = {"ten": table}, {"rows": whole(table)}
    for name, hit in (("one", np.array([rows // 2])), ("fifty", np.arange(rows // 40, rows // 40 + rows // 20))):
        tables[f"ten.{name}"] = source = correction(table, hit, "v3")
        answers[name] = whole(changed(table, source, hit, "v3"))
    return tables, answers


def make_overwrite(scale: float):
    """A million rows, and an append of which 10,000 fall on the newest of them and 1,000 are new."""
    rows = max(int(1_000_000 * scale), 2_000)
    again, entities = rows // 100, min(1_000, rows // 100)
    table, source = keyed(rows, entities, 8), keyed(again + again // 10, entities, 8, seed=17, first=rows - again)
    after = pa.concat_tables([table.slice(0, rows - again), source])
    return {"overwrite": table, "overwrite.fix": source}, {"fix": whole(after)}


def make_many(scale: float):
    """100,000 entities, ten rows of each."""
    entities = max(int(100_000 * scale), 100)
    table = keyed(10 * entities, entities)
    return {"many": table}, {"rows": whole(table), "latest": newest(table, SPECS["many"])}


def make_gaps(scale: float):
    entities = max(int(10_000 * scale), 10)
    table = gappy(entities)
    return {"gaps": table}, {
        "rows": whole(table),
        "missing": missing_runs(entities),
        "start": START,
        "end": START + MINUTES * MINUTE,
    }


def make_entities(entities: int, scale: float):
    table = keyed(10 * entities, entities)
    return {f"entities{entities}": table}, {"rows": whole(table)}


MAKERS = {order: (lambda scale, order=order: make_ticks(order, scale)) for order in ("ordered", "shuffled", "sorted")}
MAKERS |= {"wide": make_wide, "narrow": make_narrow, "payload": make_payload, "ten": make_ten}
MAKERS |= {"overwrite": make_overwrite, "many": make_many, "gaps": make_gaps}
MAKERS |= {f"entities{n}": (lambda scale, n=n: make_entities(n, scale)) for n in (10, 1_000, 100_000)}


# -- files --------------------------------------------------------------------------------------------


def save(path: pathlib.Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)


def load(folder: pathlib.Path, name: str) -> pa.Table:
    """Into private memory, so that mapped pages of the file do not count as somebody's."""
    with pa.OSFile(str(folder / f"{name}.arrow"), "rb") as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()


def names_in(folder: pathlib.Path, name: str) -> list[str]:
    """The columns of a table that is not to be loaded."""
    with pa.memory_map(str(folder / f"{name}.arrow")) as source, pa.ipc.open_file(source) as reader:
        return reader.schema.names


def answers_of(folder: pathlib.Path, dataset: str) -> dict:
    return json.loads((folder / f"{dataset}.json").read_text())


def ensure(folder: pathlib.Path, scale: float, dataset: str) -> None:
    """Make a dataset unless it is there; its answers are written last, so they say that it is whole."""
    done = folder / f"{dataset}.json"
    if done.exists():
        return
    tables, answers = MAKERS[dataset](scale)
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        save(folder / f"{name}.arrow", table)
        print(f"made {name}: {table.num_rows:,} rows, {table.nbytes / 1e6:,.0f} MB", flush=True)
    done.write_text(json.dumps(answers))


if __name__ == "__main__":
    for wanted in sys.argv[3:]:
        ensure(pathlib.Path(sys.argv[1]), float(sys.argv[2]), wanted)
