"""Real ClickHouse servers for the tests: Debian's, on free ports of 127.0.0.1, in a temporary folder.

Two servers are one cluster "fleet", without ZooKeeper. Exits with 77 (skipped) where there is none.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = shutil.which("clickhouse-server") or "/usr/sbin/clickhouse-server"
SKIPPED = 77


def skip_without_server():
    if not os.path.exists(SERVER):
        print("skipped: there is no clickhouse-server (apt-get install clickhouse-server)")
        sys.exit(SKIPPED)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Queries:
    """What can be asked of every server that has query()."""

    def rows(self, sql):
        return [line.split("\t") for line in self.query(sql).splitlines()]

    def empty(self):
        """Removes all rows, which is faster than making the tables anew."""
        for row in self.rows("SELECT DISTINCT table FROM system.parts WHERE active AND database = 'tlparse'"):
            self.query(f"TRUNCATE TABLE {row[0]}")

    def count(self, table, where="1"):
        return int(self.query(f"SELECT count() FROM {table} WHERE {where}"))


class Server(Queries):
    def __init__(self, folder, ports, shards, https=None):
        self.folder, (self.http, self.tcp, self.inter) = folder, ports
        self.url = f"http://127.0.0.1:{self.http}"
        self.https_url = None
        self.process = None
        os.makedirs(folder, exist_ok=True)
        shard = "".join(f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>" for port in shards)
        secure = ""
        if https:
            port, certificate, key = https
            self.https_url = f"https://127.0.0.1:{port}"
            secure = (f"<https_port>{port}</https_port><openSSL><server><certificateFile>{certificate}</certificateFile>"
                      f"<privateKeyFile>{key}</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>")
        with open(f"{folder}/config.xml", "w", encoding="utf-8") as file:
            file.write(f"""<yandex>
 <logger><level>warning</level><log>{folder}/server.log</log><errorlog>{folder}/error.log</errorlog></logger>
 <listen_host>127.0.0.1</listen_host><http_port>{self.http}</http_port><tcp_port>{self.tcp}</tcp_port>{secure}
 <interserver_http_port>{self.inter}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
 <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/user_files/</user_files_path>
 <format_schema_path>{folder}/format_schemas/</format_schema_path>
 <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
 <default_database>default</default_database><timezone>UTC</timezone><mark_cache_size>134217728</mark_cache_size>
 <max_connections>256</max_connections><keep_alive_timeout>10</keep_alive_timeout><max_concurrent_queries>100</max_concurrent_queries>
 <remote_servers><fleet>{shard}</fleet></remote_servers>
</yandex>
""")
        password = hashlib.sha256(b"secret").hexdigest()
        with open(f"{folder}/users.xml", "w", encoding="utf-8") as file:
            file.write(f"""<yandex>
 <profiles><default><max_memory_usage>4000000000</max_memory_usage><max_threads>2</max_threads></default>
  <pusher><allow_ddl>0</allow_ddl></pusher>
  <readonly><readonly>2</readonly></readonly></profiles>
 <users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
  <writer><password_sha256_hex>{password}</password_sha256_hex><networks><ip>127.0.0.1</ip></networks><profile>pusher</profile><quota>default</quota></writer>
  <reader><password_sha256_hex>{password}</password_sha256_hex><networks><ip>127.0.0.1</ip></networks><profile>readonly</profile><quota>default</quota></reader>
 </users>
 <quotas><default/></quotas>
</yandex>
""")

    def start(self):
        log = open(f"{self.folder}/stdout", "ab")
        self.process = subprocess.Popen([SERVER, f"--config-file={self.folder}/config.xml"], stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log, cwd=self.folder, start_new_session=True)
        log.close()
        for _ in range(600):
            try:
                if urllib.request.urlopen(self.url + "/ping", timeout=5).read() == b"Ok.\n":
                    return self
            except (urllib.error.URLError, OSError):
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        with open(f"{self.folder}/stdout", encoding="utf-8", errors="replace") as file:
            raise RuntimeError("clickhouse-server does not start:\n" + file.read()[-2000:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def query(self, sql, database="tlparse", user="default", password=""):
        request = urllib.request.Request(f"{self.url}/?database={database}", data=sql.encode(),
                                         headers={"X-ClickHouse-User": user, "X-ClickHouse-Key": password})
        try:
            return urllib.request.urlopen(request, timeout=120).read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode("utf-8", "replace")[:1000]) from None

    def cpu_s(self):
        """User and system time so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scratch(test_class):
    """A folder that is removed after the tests of the class."""
    folder = tempfile.mkdtemp(prefix="tracekit_fleet_")
    test_class.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


def cluster(test_class, folder, count=2, https=None):
    """Started servers that know each other; they are stopped after the tests of the class."""
    skip_without_server()
    ports = free_ports(3 * count)
    triples = [ports[3 * i:3 * i + 3] for i in range(count)]
    servers = [Server(f"{folder}/server{i}", triple, [one[1] for one in triples], https if i == 0 else None)
               for i, triple in enumerate(triples)]
    for server in servers:
        test_class.addClassCleanup(server.stop)
        server.start()
    return servers
