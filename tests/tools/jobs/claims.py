"""Checks a sentence of a finding: by its form, and whether what it names exists."""

import os
import re

import forms_compiles  # noqa: F401
import forms_differences  # noqa: F401
import forms_ends  # noqa: F401
import forms_issued  # noqa: F401
from facts import FORMS, LABEL, RANKS, Facts, numbers  # noqa: F401


def anything(facts, text, finding):
    """Claims that need no form: the ranks, compiles and lines exist."""
    claims = []
    known = set(facts.job.ranks()) | set(range(facts.world_size or 0))
    for match in re.finditer(RANKS, text):
        for rank in numbers(match[0]) if match[0][0] in "Rr" else []:
            claims.append((f"there is a rank {rank}", rank in known))
    for match in re.finditer(rf"(?<![\w/])({LABEL}) (<?[A-Za-z_]\w*>?)", text):
        if match[2] in (
            "after",
            "and",
            "forward",
            "backward",
            "that",
            "on",
            "of",
            "in",
            "is",
            "are",
            "was",
            "at",
            "has",
            "to",
            "or",
            "joint",
            "inference",
            "with",
        ) and not any(match[2] == one.function for log in facts.job.logs for one in log.compiles.values()):
            continue
        claims.append(
            (
                f"{match[0]} is in a log",
                (
                    any(facts.compile(log, match[1], match[2]) for log in facts.job.logs)
                    if facts.job.logs
                    else None
                ),
            )
        )
    for match in re.finditer(r"(?<![\w/.])([\w./\-]+\.py):(\d+)", text):
        claims.append(at_line(facts, match[1], int(match[2]), []))
    return claims


def at_line(facts, file, line, ranks):
    """Whether a stack or a text of a log of these ranks names that line; no ranks: of any."""
    base = os.path.basename(file)
    logs = [log for log in facts.job.logs if not ranks or log.rank in ranks]
    spelled = re.compile(rf'{re.escape(base)}(?::|\\?", line ){line}\b')
    found = any(
        any(one and os.path.basename(one) == base and at == line for one, at in log.files)
        or spelled.search(log.text)
        for log in logs
    )
    if not found and facts.job.dumps:
        found = any(
            os.path.basename(frame["filename"]) == base and frame["line"] == line
            for dump in facts.job.dumps.values()
            for entry in dump.get("entries", [])
            for frame in entry.get("frames", [])
        )
    return (
        f"{base}:{line} is in a stack" + (f" of ranks {ranks}" if ranks else ""),
        found if logs or facts.job.dumps else None,
    )


def check(facts, sentence, finding):
    """(claims, whether a form was found for the sentence)."""
    claims, is_known = [], False
    for pattern, function in FORMS:
        match = pattern.search(sentence)
        if match:
            is_known = True
            claims += function(facts, match, finding)
    return claims + anything(facts, sentence, finding), is_known
