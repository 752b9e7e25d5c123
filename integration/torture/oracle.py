"""What a table must hold, from what was sent and from the order in which the table says it was committed.

The oracle replays the table's history on a dictionary. It knows of Contrail only what the documents promise: rows come
whole and once, ids are remembered until a rollback abandons their version, a rollback takes back what it names.
"""

import json

import rows


class Wrong(AssertionError):
    """The table is not what it must be."""


def demand(condition, *told):
    if not condition:
        raise Wrong(*told)


class Oracle:
    """One table, brought forward round by round."""

    def __init__(self, table: str, uniqueness: str):
        self.table, self.uniqueness = table, uniqueness
        self.state: dict = {}
        self.columns = [frozenset()]  # those that were added, by version
        self.digests = [(0, 0)]  # by version
        self.changes: list = [[]]  # by version: (key, value before, value after)
        self.abandoned = [frozenset()]  # by version
        self.commits: dict = {}  # id → versions
        self.updates: dict = {}  # id → keys, of all that was ever sent
        self.sent: set = set()

    @property
    def version(self) -> int:
        return len(self.digests) - 1

    def tell(self, records: list[dict]):
        """What was sent, whatever came of it."""
        for record in records:
            if record["table"] == self.table and "id" in record:
                self.sent.add(record["id"])
                if record["kind"] == "update":
                    self.updates[record["id"]] = record["keys"]

    def advance(self, history: list[dict]):
        """Replay the versions that are new; history is ascending."""
        for line in history:
            if line["version"] <= self.version:
                continue
            demand(line["version"] == self.version + 1, self.table, "has no version", self.version + 1)
            self.commit(line)

    def commit(self, line: dict):
        version, operation, report = line["version"], line["operation"], json.loads(line["report"] or "null")
        columns, abandoned, change = self.columns[-1], self.abandoned[-1], []
        if operation in ("append", "update_rows"):
            change = self.rows_of(line)
        elif operation == "add_columns":
            columns = columns | set(report["columns"])
        elif operation == "rollback":
            target = report["target_version"]
            undone = [v for v in range(version - 1, target, -1) if v not in abandoned]
            demand([u["version"] for u in report["undone"]] == undone, self.table, line, "undone must be", undone)
            abandoned = self.abandoned[target] | set(range(target + 1, version))
            columns = self.columns[target]
            change = list(self.at(target).items())
            gone = self.state.keys() - dict(change).keys()
            change += [(key, None) for key in gone]
        else:
            known = ("optimize", "upgrade", "vacuum", "retention", "set_properties")
            demand(operation in known, self.table, "unknown operation", line)
        self.columns.append(columns)
        self.abandoned.append(abandoned)
        self.apply(change)

    def rows_of(self, line: dict) -> list:
        """What an append or an update writes; it must be allowed."""
        id, version = line["request_id"], line["version"]
        demand(id in self.sent, self.table, "nobody sent", line)
        earlier = [v for v in self.commits.get(id, ()) if v not in self.abandoned[-1]]
        demand(not earlier, self.table, id, "was committed twice:", earlier, version)
        self.commits.setdefault(id, []).append(version)
        if line["operation"] == "update_rows":
            fresh = rows.updated(id, self.updates[id])
            demand(fresh.keys() <= self.state.keys(), self.table, line, "updates rows that are not there")
        elif self.uniqueness == "reject":
            fresh = rows.added(id)
            demand(not fresh.keys() & self.state.keys(), self.table, line, "adds rows that are there")
        else:
            fresh = rows.replacing(id)
        return list(fresh.items())

    def apply(self, change: list):
        count, total = self.digests[-1]
        done = []
        for key, value in change:
            old = self.state.get(key)
            if old == value:
                continue
            done.append((key, old, value))
            if old is not None:
                count, total = count - 1, total - rows.hash_of(*key, old)
                del self.state[key]
            if value is not None:
                count, total = count + 1, total + rows.hash_of(*key, value)
                self.state[key] = value
        self.changes.append(done)
        self.digests.append((count, total & rows.MASK))

    def at(self, version: int) -> dict:
        """The rows at a version."""
        state = dict(self.state)
        for done in reversed(self.changes[version + 1 :]):
            for key, old, _ in reversed(done):
                if old is None:
                    del state[key]
                else:
                    state[key] = old
        return state

    def judge(self, records: list[dict], lines: dict[int, dict]):
        """Every answer that somebody got must be true of the history; lines are its versions of this round."""
        for record in records:
            report = record.get("report")
            if record["table"] != self.table or report is None:
                continue
            if record["kind"] == "read":
                self.judge_read(record)
            elif "id" in record:
                self.judge_put(record, lines)
            elif report.get("committed_version", 0) > report.get("starting_version", 0) and not report.get("no_op"):
                line = lines.get(report["committed_version"])
                demand(line and line["operation"] == record["kind"], self.table, record, "is not in the history:", line)

    def judge_read(self, record: dict):
        version = record["version"]
        demand(version <= self.version, self.table, record, "read a version that is not there")
        demand(tuple(record["report"]) == self.digests[version], self.table, record, "want", self.digests[version])

    def judge_put(self, record: dict, lines: dict[int, dict]):
        report = record["report"]
        version = report["committed_version"]
        demand(version in self.commits.get(record["id"], ()), self.table, record, "is not in the history")
        if version in lines and not report.get("replayed"):
            line = lines[version]
            want = "update_rows" if record["kind"] == "update" else "append"
            demand(line["operation"] == want and line["request_id"] == record["id"], self.table, record, line)
