"""CPU of the first call of each tool of `tlparse mcp`, to a new server whose answers are not known yet.

  mcp_times.py DATABASE TLPARSE[,TLPARSE…] [--tools findings,ranks] [--rounds 3]

Several programs are asked in turn, so that they meet the same load; the least of the rounds counts. Says whether their answers are equal.
"""

import argparse
import json
import os
import subprocess
import time

ARGUMENTS = {"compile": {"compile": "0/0"}, "search": {"text": "add"}, "diff": {"ranks": "0,1"}}
TOOLS = "findings,ranks,cache,collectives,execution,history,compile,recompiles,status,search,provenance,diff"


def cpu_seconds(pid):
    """Of the process and its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def first_call(program, database, tool):
    with subprocess.Popen([program, "mcp", database], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        began = time.monotonic()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": ARGUMENTS.get(tool, {})}}
        server.stdin.write(json.dumps(call).encode() + b"\n")
        server.stdin.flush()
        line = server.stdout.readline()
        return cpu_seconds(server.pid), time.monotonic() - began, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("programs", help="separated by commas")
    parser.add_argument("--tools", default=TOOLS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = options.programs.split(",")
    print("| tool |" + "".join(f" {program}: CPU ms, clock ms |" for program in programs) + " bytes | answers |")
    for tool in options.tools.split(","):
        calls = {program: [] for program in programs}
        for _ in range(options.rounds):
            for program in programs:
                calls[program].append(first_call(program, options.database, tool))
        lines = {line for of_program in calls.values() for _, _, line in of_program}
        result = json.loads(next(iter(lines))).get("result", {})
        state = "failed" if result.get("isError", True) else "equal" if len(lines) == 1 else "differ"
        times = "".join(f" {min(cpu for cpu, _, _ in one) * 1e3:.0f}, {min(clock for _, clock, _ in one) * 1e3:.0f} |" for one in calls.values())
        print(f"| {tool} |{times} {max(map(len, lines))} | {state} |", flush=True)


if __name__ == "__main__":
    main()
