#!/usr/bin/env python3
"""tlparse fleet jobs | time | …: the rows are those of the pushed databases, on servers of 2018 and of today."""

import json
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

try:
    import jsonschema
except ImportError:
    jsonschema = None

import chdb_server  # noqa: E402
import clickhouse  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled, log_bytes, rows  # noqa: E402

SCENARIOS = ["train_order", "cache_some_ranks", "diverge_config_2_6", "graph_breaks_2_6", "recompiles_2_6"]
DAYS = 30  # of the planted history


class Answers(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.servers = clickhouse.cluster(cls, cls.home, 2)
        cls.urls = [cls.servers[0].url]
        if chdb_server.library():
            cls.chdb = chdb_server.ChdbServer(cls.home)
            cls.addClassCleanup(cls.chdb.stop)
            cls.urls.append(cls.chdb.url)
        else:
            print("chDB is not installed: the modern dialect is not tested", file=sys.stderr)
        cls.databases = {}
        for name in SCENARIOS:
            database = cls.databases[name] = f"{cls.home}/{name}.db"
            cls.run_program(os.path.dirname(bundled(name)), "--db-only", "--db", database, "--run", name)
        for url in cls.urls:
            cls.run_program("fleet", "init", "--url", url)
            for name, database in cls.databases.items():
                cls.run_program("push", database, "--url", url, "--job", "job of " + name, "--day", "2026-10-01")

    @classmethod
    def run_program(cls, *arguments):
        done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"tlparse {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, *question, since="2026-01-01"):
        """The answer of each server, which must be one."""
        answers = [json.loads(self.tlparse("fleet", *question, "--url", url, "--since", since, "--json").stdout) for url in self.urls]
        if jsonschema:
            with open(f"{ROOT}/schemas/json/answers/fleet_{question[0]}.schema.json", encoding="utf-8") as file:
                jsonschema.validate(answers[0], json.load(file))
        for other in answers[1:]:
            self.assertEqual(answers[0], other, question)
        return answers[0]

    def test_jobs(self):
        runs = self.ask("jobs")["runs"]
        self.assertLessEqual({"job of " + name for name in SCENARIOS}, {run["job"] for run in runs})
        self.assertEqual([run["ranks"] for run in self.ask("jobs", "--job", "job of train_order")["runs"]], [4])

    def test_graph_breaks_are_those_of_the_database(self):
        ours = rows(self.databases["graph_breaks_2_6"],
                    "SELECT b.reason, b.user_file, b.user_line, count(*), round(sum(coalesce(c.duration_us, 0)) / 1e6, 6) FROM "
                    "graph_break b LEFT JOIN compile c ON c.id = b.compile_id GROUP BY 1, 2, 3")
        theirs = [[row[name] for name in ("reason", "file", "line", "count", "compile_s")]
                  for row in self.ask("breaks", "--job", "job of graph_breaks_2_6")["graph_breaks"]]
        self.assertGreater(len(ours), 3)
        self.assertEqual(sorted(map(repr, ours)), sorted(map(repr, theirs)))

    def test_recompiles_are_those_of_the_database(self):
        ours = rows(self.databases["recompiles_2_6"],
                    "SELECT coalesce(c.function, ''), r.guard, r.user_file, r.user_line, count(*) FROM recompile r LEFT JOIN compile c ON "
                    "c.id = r.compile_id WHERE r.ordinal = 0 GROUP BY 1, 2, 3, 4")
        theirs = [[row[name] for name in ("function", "guard", "file", "line", "count")]
                  for row in self.ask("recompiles", "--job", "job of recompiles_2_6")["recompiles"]]
        self.assertGreater(len(ours), 3)
        self.assertEqual(sorted(map(repr, ours)), sorted(map(repr, theirs)))

    def test_cache_rates_are_those_of_the_database(self):
        ours = rows(self.databases["cache_some_ranks"],
                    "SELECT layer, count(*), sum(state = 'hit'), sum(state IN ('miss', 'guard_miss')) FROM cache_event GROUP BY 1")
        theirs = [[row[name] for name in ("layer", "lookups", "hits", "misses")]
                  for row in self.ask("cache", "--job", "job of cache_some_ranks")["hit_rates"]]
        self.assertGreater(len(ours), 1)
        self.assertEqual(sorted(ours), sorted(theirs))

    def test_times_are_those_of_the_database(self):
        ours = rows(self.databases["train_order"],
                    "SELECT function, count(*), round(sum(duration_us) / 1e6, 6) FROM compile WHERE duration_us IS NOT NULL GROUP BY 1")
        theirs = [[row[name] for name in ("function", "compiles", "total_s")]
                  for row in self.ask("time", "--job", "job of train_order")["functions"]]
        self.assertGreater(len(ours), 3)
        self.assertEqual(sorted(ours), sorted(theirs))

    def test_ranks_names_the_component(self):
        answer = self.ask("ranks", "--job", "job of diverge_config_2_6")
        causes = {(row["cause"], row["text"], row["first_ranks"]) for row in answer["lookups"] if row["cause"]}
        self.assertEqual(causes, {("config", "inductor_config[max_fusion_size]: 64 → 13", "2")})
        answer = self.ask("ranks", "--job", "job of cache_some_ranks")
        self.assertEqual({(row["state"], row["ranks"]) for row in answer["lookups"]}, {("hit", 2), ("miss", 2)})

    def test_codes_by_version_are_those_of_the_databases(self):
        """One run of each version, and one run whose processes have both."""
        logs = [bundled(name) for name in ("mlp_train", "mlp_train_2_6")]
        codes = {}
        for name, inputs in (("code new", logs[:1]), ("code old", logs[1:]), ("code mixed", logs)):
            database = self.path(name + ".db")
            self.tlparse(*inputs, "--db-only", "--db", database)
            for row in rows(database, "SELECT c.function, c.label, g.direction, coalesce(p.torch_version, ''), h.hash FROM output_code o JOIN "
                            "compile c ON c.id = o.compile_id JOIN process p ON p.id = c.process_id JOIN graph g ON g.id = o.graph_id JOIN "
                            "content_row h ON h.id = o.content_id"):
                codes.setdefault("mixed" if name == "code mixed" else "code", set()).add(tuple(row))
            for url in self.urls:
                self.tlparse("push", database, "--url", url, "--job", "mixed" if name == "code mixed" else "code", "--day", "2026-10-05")
        for job in ("code", "mixed"):
            self.assertEqual({row[3] for row in codes[job]}, {"", "2.14.1+debian"})
            answer = self.ask("code", "--job", job)["changed_codes"]
            self.assertEqual({tuple(row[name] for name in ("function", "label", "direction", "torch_version", "content_hash"))
                              for row in answer}, codes[job])
            self.assertEqual({(row["runs"], row["codes"], row["first_day"]) for row in answer}, {(1, 1, "2026-10-05")})
        self.assertEqual(self.ask("code", "--job", "job of train_order")["changed_codes"], [])  # of one version

    def test_kernel(self):
        kernel = rows(self.databases["train_order"], "SELECT k.name FROM kernel k JOIN kernel_source s ON s.kernel_id = k.id LIMIT 1")[0][0]
        answer = self.ask("kernel", kernel, "--job", "job of train_order")
        self.assertEqual([run["processes"] for run in answer["runs"]], [4])
        ours = rows(self.databases["train_order"],
                    "SELECT DISTINCT s.file, s.line FROM kernel_source s JOIN kernel_row k ON k.id = s.kernel_id WHERE k.name = ?", kernel)
        self.assertGreater(len(answer["lines"]), 0)
        for line in answer["lines"]:
            self.assertIn([line["file"], line["line"]], ours)

    def test_findings_are_those_of_the_databases(self):
        for name in ("diverge_config_2_6", "graph_breaks_2_6"):
            ours = json.loads(self.tlparse("findings", self.databases[name], "--json").stdout)["findings"]
            for answer in range(2):  # derived, then read
                theirs = self.ask("findings", "--job", "job of " + name)["findings"]
                self.assertEqual(sorted((one["id"], one["severity"], one["kind"], one["title"]) for one in ours),
                                 sorted((one["id"], one["severity"], one["kind"], one["title"]) for one in theirs), answer)
                self.assertEqual({one["is_new"] for one in theirs}, {None})
            for server in [self.servers[0]] + ([self.chdb] if len(self.urls) > 1 else []):
                count = server.query(f"SELECT count() FROM finding WHERE job = 'job of {name}'")
                self.assertEqual(int(count), len(ours) + 1)

    def test_new_findings_are_marked(self):
        before, after = "graph_breaks_2_6", "diverge_config_2_6"
        for url in self.urls:
            for name, day in ((before, "2026-10-02"), (after, "2026-10-03")):
                self.tlparse("push", self.databases[name], "--url", url, "--job", "two runs", "--job-key", "two runs " + name, "--day", day)
        ids = {name: {one["id"] for one in json.loads(self.tlparse("findings", self.databases[name], "--json").stdout)["findings"]}
               for name in (before, after)}
        answer = self.ask("findings", "--job", "two runs")["findings"]
        self.assertEqual({one["id"] for one in answer if one["is_new"]}, ids[after] - ids[before])
        self.assertEqual({one["id"] for one in answer}, ids[after] | ids[before])

    def test_a_reader_without_the_right_to_store_gets_the_findings(self):
        credentials = self.path("reader")
        with open(credentials, "w", encoding="utf-8") as file:
            file.write("user=reader\npassword=secret\n")
        os.chmod(credentials, 0o600)
        done = self.tlparse("fleet", "findings", "--url", self.urls[0], "--since", "2026-01-01", "--job", "job of cache_some_ranks", "--json",
                            "--credentials", credentials)
        answer = json.loads(done.stdout)
        self.assertGreater(len(answer["findings"]), 0)
        self.assertTrue(any("were not kept on the server" in note for note in answer["notes"]), answer["notes"])

    def test_check_against_the_runs_of_a_job(self):
        week = "fleet:job of %s~2026-01-01"
        for name, against, code in (("train_order", "graph_breaks_2_6", 0), ("graph_breaks_2_6", "train_order", 1)):
            done = self.tlparse("check", self.databases[name], "--url", self.urls[0], "--against", week % against, "--json", expect=code)
            actual = {rule["name"]: (rule["limit"], rule["is_ok"]) for rule in json.loads(done.stdout)["rules"]}
            single = json.loads(self.tlparse("check", self.databases[name], "--against", self.databases[against], "--json",
                                             expect=code).stdout)
            self.assertEqual(actual, {rule["name"]: (rule["limit"], rule["is_ok"]) for rule in single["rules"]})
        done = self.tlparse("check", self.databases["train_order"], "--url", self.urls[0], "--against", week % "train_order", expect=2)
        self.assertIn("no other run of job", done.stderr)

    def test_a_log_of_two_processes_is_checked_process_by_process(self):
        """A fleet counts by process: so does what is compared with it."""
        data = log_bytes(bundled("graph_breaks_2_6"))
        log = self.path("two_processes.log")
        with open(log, "wb") as file:
            file.write(data + re.sub(rb"(?m)^(V\d{4} \S+ +)\d+ ", rb"\g<1>77 ", data))
        database = self.path("two_processes.db")
        self.tlparse(log, "--db-only", "--db", database)
        self.assertEqual(rows(database, "SELECT count(*), count(DISTINCT log_file_id) FROM process"), [[2, 1]])
        self.tlparse("check", database, "--url", self.urls[0], "--against", "fleet:job of graph_breaks_2_6~2026-01-01")
        self.tlparse("check", database, "--against", self.databases["graph_breaks_2_6"], expect=1)

    def test_the_queries_of_the_documentation_run(self):
        with open(f"{ROOT}/docs/fleet.md", encoding="utf-8") as file:
            queries = re.findall(r"```sql\n(.*?);\n```", file.read(), re.DOTALL)
        self.assertGreater(len(queries), 3)
        servers = [self.servers[0]] + ([self.chdb] if len(self.urls) > 1 else [])
        for query in queries:
            for server in servers:
                self.assertIsInstance(server.query(query), str, query)
        self.assertGreaterEqual(len(self.servers[0].rows(queries[0])), len(SCENARIOS))

    def plant(self, query):
        """A history of DAYS runs: that of train_order day by day, layer_3 slower by 1.4 and under another option from day 20 on."""
        def copy(table, replaced, where="1"):
            names = query(f"SELECT name FROM system.columns WHERE database = 'tlparse' AND table = '{table}'").split()
            values = ", ".join(f"{replaced[name]} AS {name}_" if name in replaced else f"`{name}`" for name in names)
            columns = ", ".join(f"`{name}`" for name in names)
            query(f"INSERT INTO {table} ({columns}) SELECT {values} FROM (SELECT * FROM {table} WHERE job = 'job of train_order' AND "
                  f"{where}) AS t CROSS JOIN (SELECT number AS n FROM numbers({DAYS})) AS d")
        key = {"job": "'planted'", "day": "toDate('2026-09-01') + n",
               "run_id": "toUUID(concat('00000000-0000-0000-0000-0000000000', if(n < 10, '0', ''), toString(n)))",
               "load_id": "load_id + n + 1"}
        copy("push", {**key, "run_name": "concat('run', toString(n))"})
        copy("compile", {**key, "duration_us": "toInt64(duration_us * if(function = 'layer_3' AND n >= 20, 1.4, 1) * (1 + n % 3 / 100))"},
             "duration_us IS NOT NULL")
        copy("process", key)
        copy("output_code", key)
        copy("run_component", key, "name != 'inductor_config[max_fusion_size]'")
        for name, value, condition in (("old", "64", "n < 20"), ("new", "13", "n >= 20")):
            query(f"INSERT INTO component SELECT MD5('{name}'), MD5('{name}'), 'inductor_config[max_fusion_size]', 'hash {name}', '{value}'")
            query(f"INSERT INTO run_component SELECT {', '.join(key[k] for k in ('job', 'day', 'run_id'))}, l + n + 1, "
                  f"'inductor_config[max_fusion_size]', MD5('{name}'), MD5('{name}') FROM (SELECT load_id AS l FROM push WHERE job = "
                  f"'job of train_order') AS t CROSS JOIN (SELECT number AS n FROM numbers({DAYS})) AS d WHERE {condition}")

    def test_several_launches_in_one_run_are_named(self):
        database = self.path("restarted.db")
        self.tlparse(os.path.dirname(bundled("restart_elastic")), "--db-only", "--db", database, "--run", "restarted")
        for url in self.urls:
            self.tlparse("push", database, "--url", url, "--job", "restarted", "--day", "2026-10-05")
        processes = rows(database, "SELECT count(*) FROM (SELECT rank FROM process GROUP BY rank HAVING count(*) > 1)")[0][0]
        self.assertGreater(processes, 1)
        self.assertIn(f"{processes} ranks have several processes", " ".join(self.ask("ranks", "--job", "restarted")["notes"]))

    def test_a_planted_regression_is_named(self):
        self.plant(self.servers[0].query)
        if len(self.urls) > 1:
            self.plant(self.chdb.query)
        answer = self.ask("time", "--job", "planted", "--function", "layer_3")
        self.assertEqual(len(answer["runs"]), DAYS)
        self.assertEqual([(jump["day"], round(jump["ratio"], 1)) for jump in answer["jumps"]], [("2026-09-21", 1.4)])
        self.assertEqual([(change["kind"], change["component"], change["before"], change["after"]) for change in answer["changes"]],
                         [("config", "inductor_config[max_fusion_size]", "64", "13")])
        self.assertEqual(self.ask("time", "--job", "planted", "--function", "layer_1")["jumps"], [])
        changing = self.ask("cache", "--job", "planted")["changing_components"]
        self.assertEqual([(row["name"], row["changes"]) for row in changing], [("inductor_config[max_fusion_size]", 1)])

    def test_pages_of_the_history(self):
        hostile = "<script>alert(1)</script>&\"'"
        for url in self.urls:
            self.tlparse("push", self.databases["train_order"], "--url", url, "--job", hostile, "--job-key", "hostile", "--day", "2026-10-04")
        server = subprocess.Popen([TLPARSE, "serve", "--url", self.urls[0], "--since", "2026-01-01", "--port", "0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            root = server.stdout.readline().strip().rstrip("/")

            def get(path, status=200, **headers):
                try:
                    with urllib.request.urlopen(urllib.request.Request(root + path, headers=headers), timeout=120) as answer:
                        self.assertEqual(status, answer.status)
                        return answer.geturl(), answer.read().decode()
                except urllib.error.HTTPError as error:
                    self.assertEqual(status, error.code)
                    return root + path, error.read().decode()

            _, jobs = get("/")
            self.assertIn("job of train_order", jobs)
            self.assertNotIn("<script", jobs)
            name = urllib.parse.quote(hostile, safe="")
            _, job = get(f"/job?name={name}")
            self.assertNotIn("<script", job)
            run_id = re.search(r'href="/run/([0-9a-f-]{36})"', job).group(1)
            database = self.databases["train_order"]
            slowest = rows(database, "SELECT max(s) FROM (SELECT sum(coalesce(duration_us, 0) + coalesce(backward_duration_us, 0)) / 1e6 "
                           "AS s FROM compile WHERE duration_us IS NOT NULL GROUP BY process_id)")[0][0]
            self.assertIn(f'<td class="n">{slowest:.3f}</td>', job)
            _, function = get(f"/function?job={name}&name=layer_3")
            self.assertIn("Median compile time", function)
            self.assertNotIn("_us", job + function)  # no name of a column
            address, page = get("/run/" + run_id)
            self.assertNotEqual(address.split("/")[2], root.split("/")[2])
            self.assertIn("<html", page)
            self.assertEqual(get("/run/" + run_id)[0], address)  # pulled once
            self.assertIn("there is no run", get("/run/ffffffff-0000-0000-0000-000000000001", 404)[1])
            get("/job?name=none", 404)
            get("/../etc/passwd", 404)
            get("/", 421, Host="example.com")
        finally:
            server.terminate()
            self.assertEqual(server.wait(60), 0)
            server.stdout.close()

    def test_shards_answer_as_one(self):
        urls = [server.url for server in self.servers]
        options = [item for url in urls for item in ("--url", url)] + ["--database", "sharded"]
        database_of = {}
        self.tlparse("fleet", "init", *options, "--cluster", "fleet")
        for name in SCENARIOS:
            self.tlparse("push", self.databases[name], *options, "--job", name, "--job-key", name)
            database_of[name] = [server.url for server in self.servers
                                 if server.query(f"SELECT count() FROM push WHERE job = '{name}'", "sharded") == "1\n"]
        self.assertEqual({len(where) for where in database_of.values()}, {1})
        for url in urls:
            done = self.tlparse("fleet", "jobs", "--url", url, "--database", "sharded", "--since", "2020-01-01", "--json")
            self.assertEqual({run["job"] for run in json.loads(done.stdout)["runs"]}, set(SCENARIOS))
            done = self.tlparse("fleet", "ranks", "--url", url, "--database", "sharded", "--since", "2020-01-01", "--job",
                                "diverge_config_2_6", "--json")
            self.assertIn("max_fusion_size", done.stdout)
        done = self.tlparse("pull", *options, "--job", "train_order", "--latest", "-o", self.path("pulled.db"))
        self.assertEqual(self.tlparse("cache", self.path("pulled.db"), "--json").stdout,
                         self.tlparse("cache", self.databases["train_order"], "--json").stdout)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.stdout.flush()
    sys.stderr.flush()
    # libchdb's threads do not outlive an ordinary exit unharmed.
    os._exit(0 if result.wasSuccessful() else 1)
