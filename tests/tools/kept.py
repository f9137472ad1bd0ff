"""What the checks beside the recordings saw: fixtures/compatibility/NAME.json, of which docs/compatibility.md and docs/measurements are made.

usage: kept.py NAME KEY MEMBER=VALUE…          keeps one entry of NAME.json, for scripts; VALUE is JSON, or a text
"""
import datetime
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "fixtures", "compatibility")


def path_of(name):
    return os.path.join(FOLDER, name + ".json")


def read(name):
    """None: never kept."""
    if not os.path.exists(path_of(name)):
        return None
    with open(path_of(name), encoding="utf-8") as file:
        return json.load(file)


def today():
    return datetime.date.today().isoformat()


def keep(name, content):
    """Writes the file, with the date, and the pages anew."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(path_of(name), "w", encoding="utf-8") as file:
        json.dump({"date": today(), **content}, file, indent=1, ensure_ascii=False, sort_keys=False)
        file.write("\n")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "tools", "pytorch", "compatibility.py"), "--write",
                    os.path.join(ROOT, "docs", "compatibility.md")], check=True)


def keep_one(name, key, content):
    """Of a file with an entry for each key, each with its date."""
    entries = (read(name) or {}).get("entries", {})
    entries[key] = {"date": today(), **content}
    keep(name, {"entries": entries})


def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    keep_one(sys.argv[1], sys.argv[2], {member: value_of(text) for member, text in (one.split("=", 1) for one in sys.argv[3:])})
