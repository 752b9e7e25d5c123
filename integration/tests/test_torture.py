"""A short torture, and that its oracle has eyes; `make torture ROUNDS=300` is the long one."""

import json
import os
import sys

import pytest

import service

sys.path.insert(0, str(service.ROOT / "integration" / "torture"))

import rows
from oracle import Oracle, Wrong

import torture

ROUNDS, SEED = int(os.environ.get("TORTURE_ROUNDS", 20)), 20260101


def test_nothing_is_lost(tmp_path, built):
    summary = torture.torture(ROUNDS, SEED, tmp_path, longest=0.8)
    assert f"{ROUNDS} rounds" in summary and "nothing lost" in summary


def test_a_digest_is_the_sum_of_its_rows():
    some = rows.added("a3-7") | rows.replacing("r2-1")
    total = sum(rows.hash_of(*key, value) for key, value in some.items()) & rows.MASK
    assert rows.digest(rows.table(some)) == [len(some), total]
    assert rows.as_dict(rows.table(some)) == some
    assert rows.digest(rows.table({})) == [0, 0]


def line(version: int, operation: str, id: str | None = None, **report) -> dict:
    return {"version": version, "operation": operation, "request_id": id, "report": json.dumps(report)}


UNDONE = [{"version": 2}, {"version": 1}]


@pytest.mark.parametrize(
    "history, answers, problem",
    [
        ([line(1, "append", "a0-1"), line(2, "append", "a0-1")], [], "was committed twice"),
        ([line(1, "append", "a0-9")], [], "nobody sent"),
        ([line(1, "append", "a0-1"), line(3, "append", "a0-2")], [], "has no version"),
        ([line(1, "append", "a0-1"), line(2, "update_rows", "u0-1")], [], None),
        ([line(1, "update_rows", "u0-1")], [], "updates rows that are not there"),
        ([line(1, "shuffle")], [], "unknown operation"),
        (
            [
                line(1, "append", "a0-1"),
                line(2, "append", "a0-2"),
                line(3, "rollback", target_version=0, undone=UNDONE),
                line(4, "append", "a0-1"),
            ],
            [],
            None,
        ),
        (
            [line(1, "append", "a0-1"), line(2, "rollback", target_version=0, undone=[])],
            [],
            "undone must be",
        ),
        ([line(1, "append", "a0-1")], [("a0-1", 1)], None),
        ([line(1, "append", "a0-1")], [("a0-1", 2)], "is not in the history"),
        ([line(1, "append", "a0-1")], [("a0-2", 1)], "is not in the history"),
    ],
)
def test_the_oracle_has_eyes(history, answers, problem):
    oracle = Oracle("t", "reject")
    keys = list(rows.added("a0-1"))[:3]
    sent = [{"kind": "add", "table": "t", "id": id} for id in ("a0-1", "a0-2")]
    oracle.tell([*sent, {"kind": "update", "table": "t", "id": "u0-1", "keys": keys}])
    told = [{"kind": "add", "table": "t", "id": i, "report": {"committed_version": v}} for i, v in answers]

    def judge():
        oracle.advance(history)
        oracle.judge(told, {entry["version"]: entry for entry in history})

    if problem is None:
        judge()
        assert oracle.version == len(history)
        assert [sum(1 for _ in oracle.at(v)) for v in range(len(history) + 1)] == [n for n, _ in oracle.digests]
    else:
        with pytest.raises(Wrong, match=problem):
            judge()
