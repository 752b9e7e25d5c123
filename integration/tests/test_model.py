"""Random steps of every verb, one after the other, against a reference in plain Python.

A failure tells the seed and the steps up to there; MODEL_SEED=n repeats them. MODEL_SEEDS=n runs so many scripts,
MODEL_STEPS=n makes them so long.
"""

import datetime
import json
import os
import random

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import service
from client import Client, fields
from modelreads import Reads
from reference import KINDS, Put, Reference, Refusal, Token, as_table, exact, random_value

SEED, SEEDS, STEPS = (
    int(os.environ.get(name, n)) for name, n in (("MODEL_SEED", 1), ("MODEL_SEEDS", 6), ("MODEL_STEPS", 100))
)


class Script(Reads):
    """One script: a server, some tables on it, and what they should hold."""

    def __init__(self, seed: int, warehouse):
        self.rng = random.Random(seed)
        # The shortest retention there is, so that versions expire while the script runs.
        self.server = service.Service(warehouse, ticket_lifetime="1s", maintenance=False)
        self.client = None
        self.tables: dict[str, Reference] = {}
        self.tokens: list[Token] = []
        self.stamps = 0
        self.told: list[str] = []

    def run(self, steps: int) -> None:
        with self.server:
            self.client = Client(self.server.uri)
            try:
                for name in ("first", "second"):
                    self.create(name)
                for _ in range(steps):
                    name = self.rng.choice(list(self.tables))
                    verbs, weights = zip(*VERBS.items())
                    verb = self.rng.choices(verbs, weights)[0]
                    self.tell(f"{verb.__name__} {name} at version {self.tables[name].version}")
                    verb(self, name)
                for name in self.tables:
                    self.settle(name)
            finally:
                self.client.close()

    def create(self, name: str) -> None:
        kind = self.rng.choice(KINDS)
        self.tell(f"create {name} as {kind}")
        properties = {"contrail.snapshot-retention": "1s"}
        made = self.client.act("create_table", table=name, properties=properties, **kind.definition())
        self.tables[name] = Reference(kind, made["table_id"])
        with pytest.raises(fl.FlightError, match="^TABLE_EXISTS"):
            self.client.act("create_table", table=name, **kind.definition())

    def judge(self, call, reference) -> tuple[dict | None, object]:
        """Do something here and there. The report and the reference's answer, or None where both refused alike."""
        try:
            want = reference()
        except Refusal as refusal:
            with pytest.raises(fl.FlightError) as caught:
                call()
            told = fields(caught.value)
            assert (told["token"], told | refusal.fields) == (refusal.token, told), refusal
            self.tell(f"  refused: {caught.value!s:.300}")
            return None, None
        report = call()
        self.tell(f"  {json.dumps(report):.300}")
        return report, want

    # Rows to send.

    def some_rows(self, t: Reference, count: int, columns) -> list[dict]:
        kind = t.kind
        width = kind.width or 1
        return [
            {name: self.rng.choice(values) for name, _, values in kind.entities}
            | {"at": kind.first + self.rng.randint(-30, 90) * width + self.rng.choice([0, 0, width - 1])}
            | {name: random_value(self.rng, *columns[name]) for name in columns if name not in kind.keys}
            for _ in range(count)
        ]

    def stream(self, t: Reference) -> tuple[list[dict], pa.Table]:
        """Rows that a table may take, with what is left out as null, and as they are sent."""
        columns = t.now.columns or t.kind.columns()
        rows = self.some_rows(t, self.rng.choice([0, 1, 2, 5, 20]), columns)
        if self.maybe(0.8) and t.kind.uniqueness != "none":  # most appends fit
            taken = {t.kind.slot(row) for row in t.now.rows} if t.kind.uniqueness == "reject" else set()
            rows = list({t.kind.slot(row): row for row in rows if t.kind.slot(row) not in taken}.values())
        sent = dict(columns)
        if t.now.added:
            for name, (_, nullable) in columns.items():
                if nullable and self.maybe(0.3):
                    del sent[name]
        rows = [{name: row[name] if name in sent else None for name in columns} for row in rows]
        order = self.rng.sample(list(sent), len(sent))
        return rows, as_table(rows, {name: sent[name] for name in order})

    def some_version(self, t: Reference) -> int | None:
        """An expected_version: mostly none or the right one."""
        return self.rng.choice([None, None, None, t.version, t.version, max(0, t.version - 1)])

    def known(self, t: Reference, request_id: str | None, verb: str, content) -> Put | None:
        put = t.now.puts.get(request_id)
        if put is not None and (put.verb, put.content) != (verb, content):
            raise Refusal("REQUEST_ID_REUSED", request_id=request_id)
        return put

    def remember(self, t: Reference, request_id: str | None, verb: str, content, report: dict | None) -> None:
        if request_id is not None and report is not None:
            t.now.puts[request_id] = Put(verb, content, report)

    # The verbs.

    def append(self, name: str) -> None:
        t = self.tables[name]
        rows, data = self.stream(t)
        settings = {
            "request_id": self.rng.choice([None, f"put-{self.rng.randint(0, 9)}"]),
            "expected_version": self.some_version(t),
        }
        old = t.now.puts.get(settings["request_id"])
        if old is not None and old.verb == "append" and self.maybe(0.7):
            data = old.content.table
            rows = old.content.rows
        content = Content(rows, data)
        self.stamps += 1
        self.tell(f"  rows {rows} columns {data.column_names} {settings}")

        def reference():
            put = self.known(t, settings["request_id"], "append", content)
            if put is not None:
                return put
            t.expect(settings["expected_version"])
            if not rows:
                return 0, 0
            columns = t.now.columns or {name: t.kind.columns()[name] for name in data.column_names}
            return t.append(t.last_of_intervals(rows), columns, self.stamps)

        before = t.version
        sent = {k: v for k, v in settings.items() if v is not None}
        report, want = self.judge(lambda: self.client.append(name, data, self.rng.choice([None, 3]), **sent), reference)
        self.appended(t, settings["request_id"], "append", content, before, report, want)

    def appended(self, t: Reference, request_id, verb, content, before, report, want) -> None:
        """Compare an AppendReport, and remember it."""
        if report is None:
            return
        if isinstance(want, Put):
            assert report == want.report | {"replayed": True}
            return
        assert (report["rows"], report["rows_replaced"]) == want
        assert (report["committed_version"], report["replayed"]) == (t.version, False)
        assert report["starting_version"] == before and sum(f["rows"] for f in report["data_files"]) == want[0]
        if report["rows"]:
            self.remember(t, request_id, verb, content, report)

    def miss(self, name: str) -> None:
        """A stream that lacks a column which it must have, or has one too many."""
        t = self.tables[name]
        if t.now.columns is None:
            return
        data = as_table(self.some_rows(t, 2, t.now.columns), t.now.columns)
        wrong = data.drop_columns("count") if self.maybe(0.5) else data.append_column("other", pa.array([1, 2]))
        op = self.rng.choice(["append", "stage"])
        with pytest.raises(fl.FlightError, match="^SCHEMA_MISMATCH"):
            self.client.put({"op": op, "table": name, "rows": 2}, wrong)

    def stage(self, name: str) -> None:
        t = self.tables[name]
        rows, data = self.stream(t)
        if not rows:
            return
        self.stamps += 1
        self.tell(f"  rows {rows} columns {data.column_names}")
        command = {"op": "stage", "table": name, "rows": len(rows)}
        report, kept = self.judge(lambda: self.client.put(command, data), lambda: t.last_of_intervals(rows))
        if report is not None:
            assert report["rows"] == len(kept)
            columns = t.now.columns or {name: t.kind.columns()[name] for name in data.column_names}
            kept = [row | {"stamp": self.stamps} for row in kept]
            self.tokens.append(Token(report["staged"], t.table_id, dict(columns), kept))

    def commit_staged(self, name: str) -> None:
        t = self.tables[name]
        mine = [k for k in self.tokens if k.table_id == t.table_id and (not k.gone or self.maybe(0.1))]
        if not mine or self.maybe(0.05):
            mine = self.tokens
        tokens = self.rng.sample(mine, min(len(mine), self.rng.randint(1, 3)))
        if not tokens:
            return
        body = {"request_id": f"put-{self.rng.randint(0, 19)}", "expected_version": self.some_version(t)}
        self.tell(f"  tokens {[self.tokens.index(k) for k in tokens]} {body}")

        def reference():
            put = self.known(t, body["request_id"], "commit_staged", None)
            if put is not None:
                for token in tokens:
                    token.gone = token.gone or token.table_id == t.table_id
                return put
            t.expect(body["expected_version"])
            return self.take(t, tokens)

        before = t.version
        sent = {k: v for k, v in body.items() if v is not None} | {"staged": [k.text for k in tokens]}
        report, want = self.judge(lambda: self.client.act("commit_staged", table=name, **sent), reference)
        if report is not None and not isinstance(want, Put):
            for token in tokens:
                token.gone = True
        self.appended(t, body["request_id"], "commit_staged", None, before, report, want)

    def take(self, t: Reference, tokens: list[Token]) -> tuple[int, int]:
        """Append what was staged."""
        bad = [f"staged[{i}]" for i, token in enumerate(tokens) if token.gone or token.table_id != t.table_id]
        if bad:
            raise Refusal("INVALID", **({"field": bad[0]} if len(bad) == 1 else {}))
        columns = t.now.columns or tokens[0].columns
        for token in tokens:
            if set(token.columns) - set(columns) or t.now.columns is None and token.columns != columns:
                raise Refusal("SCHEMA_MISMATCH")
        seen = {}
        for i, token in enumerate(tokens):
            for row in token.rows if t.kind.uniqueness != "none" else ():
                if seen.setdefault(t.kind.slot(row), i) != i:
                    raise Refusal("DUPLICATE_INTERVAL")
        return t.append([row for token in tokens for row in token.rows], columns, None)

    def abort_staged(self, name: str) -> None:
        t = self.tables[name]
        mine = [k for k in self.tokens if k.table_id == t.table_id]
        for token in self.rng.sample(mine, min(len(mine), 1)):
            report = self.client.act("abort_staged", table=name, staged=[token.text])
            assert (report["files_removed"] > 0) == (not token.gone)
            token.gone = True

    def update_rows(self, name: str) -> None:
        t = self.tables[name]
        if t.now.columns is None:
            return
        payload = [c for c in t.now.columns if c not in t.kind.keys]
        columns = self.rng.sample(payload, self.rng.randint(1, len(payload)))
        chosen = {c: t.now.columns[c] for c in (*t.kind.keys, *columns)}
        rows = [
            {k: row[k] for k in t.kind.keys} | {c: random_value(self.rng, *t.now.columns[c]) for c in columns}
            for row in self.rng.sample(t.now.rows, min(len(t.now.rows), self.rng.choice([0, 1, 3, 10])))
        ]
        if self.maybe(0.1):
            rows += self.some_rows(t, 2, chosen)
        if self.maybe(0.1):
            rows += rows[:1]
        version = self.rng.choice([t.version] * 9 + [max(0, t.version - 1)])
        request_id = self.rng.choice([None, f"put-{self.rng.randint(0, 9)}"])
        old = t.now.puts.get(request_id)
        if old is not None and old.verb == "update_rows" and self.maybe(0.7):
            content = old.content
            rows, columns, chosen = content.rows, content.columns, content.chosen
        content = Content(rows, None, columns, chosen)
        self.tell(f"  rows {rows} columns {columns} expected {version} id {request_id}")

        def reference():
            put = self.known(t, request_id, "update_rows", content)
            if put is not None:
                return put
            t.expect(version)
            if rows:
                t.update([t.kind.key(row) for row in rows], [{c: row[c] for c in columns} for row in rows])
            return None

        command = {"op": "update_rows", "table": name, "columns": columns, "expected_version": version}
        if request_id is not None:
            command["request_id"] = request_id
        report, put = self.judge(lambda: self.client.put(command, as_table(rows, chosen)), reference)
        if report is None:
            return
        if put is not None:
            assert report == put.report
            return
        assert (report["starting_version"], report["committed_version"]) == (version, t.version)
        assert (report["rows_updated"], report["no_op"]) == (len(rows), not rows)
        if rows:
            self.remember(t, request_id, "update_rows", content, report)

    def add_columns(self, name: str) -> None:
        t = self.tables[name]
        self.stamps += 1
        column, kind = f"c{self.stamps}", self.rng.choice([pa.int64(), pa.float64(), pa.string()])
        version = self.some_version(t)

        def reference():
            if t.now.columns is None:
                raise Refusal("INVALID")
            t.expect(version)
            state = t.now.copy()
            state.columns[column], state.added = (kind, True), True
            state.rows = [row | {column: None} for row in state.rows]
            t.commit("add_columns", state)

        body = {"columns": [{"name": column, "type": str(kind)}]} | (
            {} if version is None else {"expected_version": version}
        )
        report, _ = self.judge(lambda: self.client.act("add_columns", table=name, **body), reference)
        assert report is None or (report["committed_version"], report["columns"]) == (t.version, [column])

    def set_properties(self, name: str) -> None:
        t = self.tables[name]
        team = self.rng.choice([None, "ops", "lab"])
        report = self.client.act("set_properties", table=name, properties={"team": team})
        if team != t.now.team:
            state = t.now.copy()
            state.team = team
            t.commit("set_properties", state)
        assert report["committed_version"] == t.version and report["properties"].get("team") == team

    def optimize(self, name: str) -> None:
        t = self.tables[name]
        body = {"layout": self.rng.choice(["mixed", "mixed", "entity"]), "dry_run": self.maybe(0.2)}
        if self.maybe(0.3):
            body["target_file_bytes"] = self.rng.choice([1000, 4000])
        version = self.some_version(t)
        if version is not None:
            body["expected_version"] = version
        self.tell(f"  {body}")
        report, _ = self.judge(lambda: self.client.act("optimize", table=name, **body), lambda: t.expect(version))
        if report is None:
            return
        assert report["starting_version"] == t.version
        if not report["no_op"] and not body["dry_run"]:
            t.commit("optimize", t.now.copy())
        assert report["committed_version"] == t.version

    def vacuum(self, name: str) -> None:
        t = self.tables[name]
        body = {"apply": self.maybe(0.7), "expire": self.maybe(0.3)}
        if self.maybe(0.5):
            just = datetime.datetime.now(datetime.UTC) - datetime.timedelta(milliseconds=1)
            body |= {"force": True, "older_than": just.isoformat()}
        self.tell(f"  {body}")
        report = self.client.act("vacuum", table=name, **body)
        self.tell(f"  {report}")
        assert report["starting_version"] == t.version
        assert body["apply"] or report["committed_version"] == t.version and report["deleted"]["files"] == 0
        assert body["expire"] or report["committed_version"] == t.version
        for _ in range(t.version, report["committed_version"]):
            t.commit("vacuum", t.now.copy())
        history = self.client.get({"op": "history", "table": name}).to_pylist()
        oldest = min(h["version"] for h in history if not h["expired"])
        assert t.oldest <= oldest <= t.version and (oldest == t.oldest or body["expire"])
        t.oldest = oldest
        if self.maybe(0.5):
            self.settle(name)

    def rollback(self, name: str) -> None:
        t = self.tables[name]
        target = self.rng.randint(max(0, t.version - 8), t.version)
        version = self.rng.choice([t.version] * 5 + [max(0, t.version - 1)])
        dry = self.maybe(0.1)

        def reference():
            t.expect(version)
            if target < t.oldest:
                raise Refusal("VERSION_EXPIRED", version=target)

        body = {"version": target, "expected_version": version, "dry_run": dry}
        self.tell(f"  {body}")
        report, _ = self.judge(lambda: self.client.act("rollback", table=name, **body), reference)
        if report is None:
            return
        assert report["rows"] == len(t.at(target).rows) and report["no_op"] == (target == t.version)
        assert [u["version"] for u in report["undone"]] == sorted(
            set(range(target + 1, t.version + 1)) - t.now.undone, reverse=True
        )
        if not dry and not report["no_op"]:
            t.roll_back(target, report["files_added"] + report["files_removed"] > 0)
        assert report["committed_version"] == t.version

    def upgrade(self, name: str) -> None:
        t = self.tables[name]
        body = {"keep_snapshots": "1s", "compact": self.maybe(0.7), "dry_run": self.maybe(0.3)}
        self.tell(f"  {body}")
        report = self.client.act("upgrade", table=name, **body)
        self.tell(f"  {report}")
        assert report["starting_version"] == t.version and report["no_op"] == (not report["steps"])
        for version in sorted({s["version"] for s in report["steps"]} - {None}):
            assert version == t.version + 1
            t.commit("upgrade", t.now.copy())
        assert report["committed_version"] == t.version
        if not body["dry_run"]:
            assert self.client.act("upgrade", table=name, **body)["no_op"]

    def checkpoint(self, name: str) -> None:
        assert self.client.act("checkpoint", table=name)["version"] == self.tables[name].version

    def restart(self, _: str) -> None:
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = Client(self.server.uri)

    def drop(self, name: str) -> None:
        report = self.client.act("drop_table", table=name)
        assert report["version"] == self.tables.pop(name).version
        with pytest.raises(fl.FlightError, match="^TABLE_NOT_FOUND"):
            self.client.read(name)
        self.create(name)


class Content:
    """What a put holds, compared as a table compares it by its digest: rows in their order, columns in none."""

    def __init__(self, rows, table, columns=(), chosen=None):
        self.rows, self.table, self.columns, self.chosen = rows, table, columns, chosen
        self.told = [exact(row, sorted(row)) for row in rows], sorted(columns)

    def __eq__(self, other) -> bool:
        return isinstance(other, Content) and self.told == other.told


VERBS = {
    Script.append: 24,
    Script.miss: 2,
    Script.stage: 6,
    Script.commit_staged: 6,
    Script.abort_staged: 1,
    Script.update_rows: 8,
    Script.add_columns: 3,
    Script.set_properties: 3,
    Script.optimize: 5,
    Script.vacuum: 5,
    Script.rollback: 8,
    Script.upgrade: 2,
    Script.checkpoint: 2,
    Script.check: 3,
    Script.restart: 2,
    Script.drop: 0.5,
    Script.read: 10,
    Script.expired: 1,
    Script.read_since: 5,
    Script.latest: 5,
    Script.coverage: 5,
    Script.describe: 4,
}


@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
def test_random_steps(tmp_path, built, seed):
    script = Script(seed, tmp_path / "warehouse")
    try:
        script.run(STEPS)
    except Exception as error:
        steps = "\n".join(script.told)
        pytest.fail(f"MODEL_SEED={seed} MODEL_STEPS={STEPS}: {error!r:.2000}\n{steps}")
