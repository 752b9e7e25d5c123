"""What a run has measured, by workload and peer: medians, spreads, ratios."""

import statistics

OURS = "contrail"
MISSING = ("failed", "timeout", "not_offered")


class Results:
    def __init__(self, entries: list[dict]):
        self.entries = entries
        self.by = {}
        for entry in entries:
            self.by.setdefault((entry["workload"], entry["peer"]), []).append(entry)

    def measured(self, workload: str) -> list[str]:
        """The peers that were asked, in the order of the first round."""
        return [peer for found, peer in self.by if found == workload]

    def good(self, workload: str, peer: str) -> list[dict]:
        return [e for e in self.by.get((workload, peer), []) if not any(key in e for key in MISSING)]

    def median(self, workload: str, peer: str, key: str) -> float | None:
        values = [e[key] for e in self.good(workload, peer) if e.get(key) is not None]
        return statistics.median(values) if values else None

    def spread(self, workload: str, peer: str, key: str) -> str:
        """Half the distance between the best and the worst round; or that there was one round only."""
        values = [e[key] for e in self.good(workload, peer) if e.get(key) is not None]
        if len(values) < 2:
            return "1 round"
        return f"±{50 * (max(values) - min(values)) / statistics.median(values):.0f} %" + " (2)" * (len(values) == 2)

    def why_missing(self, workload: str, peer: str) -> str | None:
        """Why there is no figure at all."""
        if self.good(workload, peer):
            return None
        entries = self.by.get((workload, peer))
        if not entries:
            return "not measured"
        last = entries[-1]
        if "not_offered" in last:
            return "not offered"
        return f"no end after {last['timeout']:g} s" if "timeout" in last else f"failed: {last['failed'][:120]}"

    def right(self, workload: str, peer: str) -> str:
        """Whether the rows were those of the reference, in every round."""
        told = [e["right"] for e in self.good(workload, peer) if e.get("right") is not None]
        return "" if not told else "yes" if all(told) else "**NO**"

    def ratio(self, workload: str, peer: str, key: str = "wall", ours: str = OURS) -> float | None:
        """How many times faster we are than the peer; below 1 we are slower."""
        mine, theirs = self.median(workload, ours, key), self.median(workload, peer, key)
        if not mine or not theirs:
            return None
        return mine / theirs if key == "per_second" else theirs / mine
