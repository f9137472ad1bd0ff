"""Records jobs of many shapes with many faults, each with the key to its first finding.

usage (in tests/tools):
  python3 -m jobs list [--shapes DIR]
  python3 -m jobs show SHAPE FAULT [--inputs I] [--seed N]    prints the programs
  python3 -m jobs record SHAPE FAULT --root DIR --out DIR [--inputs I] [--seed N]
  python3 -m jobs plan --root DIR --out DIR [--part first|rest|all] [--again]
                      [--only PATTERN,…] [--max-load N]
  python3 -m jobs rekey --out DIR [--shapes DIR]              makes the keys anew, from the files

--root: a folder with a Debian that has PyTorch (README.md). --shapes: more shapes, of another
folder; repeatable. --inputs: logs, dumps, profiles or run.
"""

import argparse
import fnmatch
import glob
import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
import key  # noqa: E402
import plan as plan_of  # noqa: E402
import plans  # noqa: E402
import rawlogs  # noqa: E402
import recorder  # noqa: E402
import shapes  # noqa: E402


def is_recorded(path):
    """Whether there is a recording that is what was planned."""
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return not json.load(file)["problems"]


def record_all(arguments, all_shapes):
    combinations = plans.combinations(all_shapes, arguments.part, arguments.shapes)
    if arguments.only:
        combinations = [
            one
            for pattern in arguments.only.split(",")
            for one in combinations
            if fnmatch.fnmatch("__".join(one), pattern)
        ]
    root = recorder.Root(arguments.root)
    work = recorder.Recorder(root, arguments.out)
    failed = 0
    for number, (shape, fault, inputs) in enumerate(combinations, 1):
        plan = plan_of.Plan(all_shapes[shape], faults.FAULTS[fault], inputs, arguments.seed)
        if not arguments.again and is_recorded(os.path.join(arguments.out, plan.name, "meta.json")):
            continue
        while arguments.max_load and os.getloadavg()[0] > arguments.max_load:
            time.sleep(5)
        begun = time.time()
        try:
            meta = work.record(plan)
            print(
                f"{number}/{len(combinations)} {plan.name}: {time.time() - begun:.0f} s {meta['problems'] or ''}",
                flush=True,
            )
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"{number}/{len(combinations)} {plan.name}: not recorded", flush=True)
            if root.process.poll() is not None:
                root = recorder.Root(arguments.root)
                work = recorder.Recorder(root, arguments.out)
    root.close()
    return 1 if failed else 0


def rekey(arguments, all_shapes):
    for path in sorted(glob.glob(os.path.join(arguments.out, "*", "meta.json"))):
        with open(path, encoding="utf-8") as file:
            meta = json.load(file)
        plan = plan_of.Plan(
            all_shapes[meta["shape"]], faults.FAULTS[meta["fault"]], meta["inputs"], meta["seed"]
        )
        job = rawlogs.Job(os.path.dirname(path))
        if plan.victim != meta["victim"] and meta["victim"] is not None:
            print(f"{meta['name']}: was recorded with another plan")
            continue
        before = meta["cause"]
        meta["cause"] = key.cause_of(plan, job)
        meta["launched"] = key.launches_of(job.folder, job)
        meta["logs"] = key.describe_logs(job)
        if before != meta["cause"]:
            print(f"{meta['name']}: {before} → {meta['cause']}")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(meta, file, indent=1)
    return 0


def main():
    parser = argparse.ArgumentParser(
        prog="jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("list", "show", "record", "plan", "rekey"))
    parser.add_argument("shape", nargs="?")
    parser.add_argument("fault", nargs="?", default="none")
    parser.add_argument("--inputs", choices=faults.INPUTS, default="logs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root")
    parser.add_argument("--out", default="jobs")
    parser.add_argument("--shapes", action="append", default=[])
    parser.add_argument("--part", choices=("first", "rest", "all"), default="all")
    parser.add_argument("--only", help="names of recordings, with * and ?, in this order")
    parser.add_argument("--max-load", type=float, help="waits while the machine has more to do")
    parser.add_argument("--again", action="store_true", help="also those that are recorded")
    arguments = parser.parse_args()
    all_shapes = shapes.load_all(*arguments.shapes)
    if arguments.command == "list":
        for shape in all_shapes.values():
            print(f"{shape.name:14} {shape.about}\n{'':14} {', '.join(plans.faults_of(shape))}")
        return 0
    if arguments.command == "rekey":
        return rekey(arguments, all_shapes)
    if arguments.command == "plan":
        return record_all(arguments, all_shapes)
    if arguments.shape not in all_shapes or arguments.fault not in faults.FAULTS:
        parser.error(f"shapes: {', '.join(all_shapes)}; faults: {', '.join(faults.FAULTS)}")
    plan = plan_of.Plan(
        all_shapes[arguments.shape], faults.FAULTS[arguments.fault], arguments.inputs, arguments.seed
    )
    if arguments.command == "show":
        for name, text in plan.files.items():
            print(f"# ==> {name} <==\n{text}")
        return 0
    root = recorder.Root(arguments.root)
    meta = recorder.Recorder(root, arguments.out).record(plan)
    root.close()
    print(plan.name, meta["problems"] or "recorded")
    return 1 if meta["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
