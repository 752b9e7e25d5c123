"""Rows as text that can be compared, whoever read them: the form of the expectations in testdata/delta."""

import base64
import datetime
import decimal
import json
import math


def lines(table) -> list[str]:
    """Each row as one JSON array, in the order of the texts: the two packages give rows in orders of their own."""
    values = zip(*(column.to_pylist() for column in table.columns)) if table.num_columns else []
    return sorted(json.dumps([plain(v) for v in row], ensure_ascii=False, separators=(",", ":")) for row in values)


EPOCH = datetime.datetime(1970, 1, 1)


def plain(value):
    """A value as JSON can say it without loss."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case decimal.Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.datetime():  # microseconds since the epoch
            utc = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return (utc - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return value.isoformat()
        case dict():
            return {name: plain(v) for name, v in value.items()}
        case list() | tuple():  # a map is a list of pairs
            return [plain(v) for v in value]
    return value
