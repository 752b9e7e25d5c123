"""What test_model reads: each verb compares what the server answers with the reference."""

import json
import random

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from client import Client, fields
from reference import Reference, Refusal, as_rows, exact, runs


class Reads:
    """The reading half of a script."""

    rng: random.Random
    client: Client
    tables: dict[str, Reference]
    told: list[str]

    def tell(self, text: str) -> None:
        self.told.append(text)

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def old_version(self, t: Reference) -> int:
        return self.rng.choice([t.version, t.version, self.rng.choice(t.readable())])

    def read(self, name: str, version: int | None = None) -> None:
        """All rows of a version, or some of them."""
        t = self.tables[name]
        version = self.old_version(t) if version is None else version
        state, request = t.at(version), {"version": version}
        if state.columns is None:
            assert self.client.read(name, version=version).num_rows == 0
            return
        rows = state.rows
        if self.maybe(0.3):
            low, high = sorted(t.kind.first + self.rng.randint(-40, 95) * (t.kind.width or 1) for _ in range(2))
            request |= {"start": low, "end": high + 1}
            rows = [row for row in rows if low <= row["at"] <= high]
        if t.kind.entities and self.maybe(0.3):
            column, _, values = self.rng.choice(t.kind.entities)
            wanted = self.rng.sample(values, self.rng.randint(0, 2))
            request["entities"] = [{column: value} for value in wanted]
            rows = [row for row in rows if row[column] in wanted]
        if self.maybe(0.3):
            condition, holds = self.rng.choice(CONDITIONS)
            request["filter"] = [condition]
            rows = [row for row in rows if holds(row[condition[0]])]
        columns = list(state.columns)
        if self.maybe(0.3):
            columns = request["columns"] = self.rng.sample(columns, self.rng.randint(1, len(columns)))
        self.compare(t, rows, columns, request, name)

    def compare(self, t: Reference, rows: list[dict], columns: list[str], request: dict, name: str) -> None:
        """What a scan gives, in which order, with the rows it is to give."""
        order = t.kind.key
        if self.maybe(0.3):
            request["newest_first"] = True
            order = t.kind.newest_first
        want = sorted(rows, key=order)
        alike = t.kind.uniqueness == "none"
        if self.maybe(0.3) and not alike:
            request["limit"] = self.rng.randint(0, 10)
            want = want[: request["limit"]]
        self.tell(f"  read {request}")
        if self.maybe(0.3):
            info = self.client.info(table=name, max_endpoints=3, **request)
            got = pa.concat_tables([self.client.get(e.ticket) for e in info.endpoints])
            assert info.total_records in (-1, got.num_rows)
        else:
            got = self.client.read(name, **request)
        assert got.column_names == columns
        got, want = ([exact(row, columns) for row in some] for some in (as_rows(got), want))
        assert (sorted(got) == sorted(want)) if alike else (got == want)

    def expired(self, name: str) -> None:
        t = self.tables[name]
        if t.oldest > 0:
            with pytest.raises(fl.FlightError, match="^VERSION_EXPIRED"):
                self.client.read(name, version=self.rng.randrange(t.oldest))
        with pytest.raises(fl.FlightError, match="^VERSION_NOT_FOUND"):
            self.client.read(name, version=t.version + 1)

    def read_since(self, name: str) -> None:
        t = self.tables[name]
        version = self.old_version(t)
        since, ignore = self.rng.randint(max(t.oldest, version - 6), version), self.maybe(0.4)
        if t.at(version).columns is None:
            return
        request = {"version": version, "since_version": since} | ({"changes": "ignore"} if ignore else {})
        self.tell(f"  {request}")
        columns = list(t.at(version).columns)
        try:
            want = sorted(exact(row, columns) for row in t.since(since, version, ignore))
        except Refusal as refusal:
            with pytest.raises(fl.FlightError) as caught:
                self.client.read(name, **request)
            told = fields(caught.value)
            assert (told["token"], told | refusal.fields) == (refusal.token, told)
            return
        assert sorted(exact(row, columns) for row in as_rows(self.client.read(name, **request))) == want

    def latest(self, name: str) -> None:
        t = self.tables[name]
        version = self.old_version(t)
        request = {"op": "latest", "table": name, "version": version}
        if t.at(version).columns is None:
            with pytest.raises(fl.FlightError, match="^INVALID"):
                self.client.get(request)
            return
        if self.maybe(0.4):
            request["at"] = t.kind.first + self.rng.randint(-30, 90) * (t.kind.width or 1)
        self.tell(f"  {request}")
        want, columns = t.latest(version, request.get("at")), list(t.at(version).columns)
        got = as_rows(self.client.get(request))
        assert [t.kind.entity(row) for row in got] == sorted(want)
        for row in got:
            assert exact(row, columns) in [exact(w, columns) for w in want[t.kind.entity(row)]]

    def coverage(self, name: str) -> None:
        t = self.tables[name]
        version, kind = self.old_version(t), self.rng.choice(["missing", "covered", "summary"])
        low, high = sorted(self.rng.sample(range(-40, 95), 2))
        width = t.kind.width or 1
        start, end = t.kind.first + low * width, t.kind.first + high * width
        request = {"op": "coverage", "table": name, "version": version, "kind": kind, "start": start, "end": end}
        if t.at(version).columns is None or t.kind.width is None:
            with pytest.raises(fl.FlightError, match="^(INVALID|NO_GRANULARITY)"):
                self.client.get(request)
            return
        self.tell(f"  {request}")
        domain = set(range(start // width, (end - 1) // width + 1))
        entities = t.covered(version) or ({} if t.kind.entities else {(): set()})
        want = []
        for entity, covered in sorted(entities.items()):
            filled, empty = covered & domain, domain - covered
            if kind == "summary":
                longest = max((b - a for a, b in runs(empty)), default=0)
                want.append((*entity, len(filled) / len(domain), len(filled), len(empty), longest))
            else:
                pieces = runs(empty if kind == "missing" else filled)
                want += [(*entity, a * width, b * width, b - a) for a, b in pieces]
        got = self.client.get(request)
        for column in ("start", "end"):
            if kind != "summary" and pa.types.is_timestamp(got[column].type):
                got = got.set_column(got.column_names.index(column), column, got[column].cast(pa.int64()))
        assert [tuple(row.values()) for row in got.to_pylist()] == want

    def describe(self, name: str) -> None:
        t = self.tables[name]
        version = self.old_version(t)
        state, told = t.at(version), self.client.act("describe_table", table=name, version=version)
        assert (told["version"], told["rows"]) == (version, len(state.rows))
        assert told["entities"] == len({t.kind.entity(row) for row in state.rows})
        assert told["properties"].get("team") == state.team
        assert (told["columns"] and [c["name"] for c in told["columns"]]) == (state.columns and list(state.columns))
        for entry in self.client.get({"op": "history", "table": name}).to_pylist():
            commit = t.commits[entry["version"]]
            assert entry["operation"] == commit.operation and entry["expired"] == (entry["version"] < t.oldest)
        listed = {e["table"]: e for e in self.client.act("list_tables")["tables"]}
        assert listed[f"default.{name}"]["rows"] == len(t.now.rows)
        assert listed[f"default.{name}"]["version"] == t.version

    def settle(self, name: str) -> None:
        """Every version that can be read has its rows, and the table is sound."""
        for version in self.tables[name].readable():
            self.read(name, version)
        self.check(name)

    def check(self, name: str) -> None:
        """The table is sound."""
        action = fl.Action("check", json.dumps({"table": name, "repair": self.maybe(0.3)}).encode())
        messages = [json.loads(m.body.to_pybytes()) for m in self.client.flight.do_action(action)]
        assert not [f for m in messages for f in m.get("findings", ())]
        assert messages[-1]["result"]["ok"] and messages[-1]["result"]["version"] == self.tables[name].version


def above(value, bound: float) -> bool:
    return value is not None and (value != value or value > bound)


CONDITIONS = [
    (["value", ">", 1], lambda v: above(v, 1)),
    (["value", "is null"], lambda v: v is None),
    (["value", "<=", 0], lambda v: v is not None and not above(v, 0)),
    (["count", "in", [-1, 0, 4]], lambda v: v in (-1, 0, 4)),
    (["count", "!=", 2], lambda v: v != 2),
]
