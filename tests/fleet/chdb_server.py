"""A ClickHouse of today for the tests, where chDB is installed (PyPI: chdb; npm: @chdb/lib-linux-x64-gnu): its engine behind HTTP, as much of
the interface as tlparse uses. It has no users, no cluster and no wire protocol of its own.

The package of PyPI is taken if the Python that runs this has it, else the libchdb.so that CHDB_LIBRARY names or node_modules of viewer/ has.
"""

import ctypes
import glob
import gzip
import http.server
import importlib.util
import os
import resource
import threading
import urllib.parse

import clickhouse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def library():
    """The name of the Python package, or the path of libchdb.so; None if neither is installed."""
    named = os.environ.get("CHDB_LIBRARY")
    if not named and importlib.util.find_spec("chdb"):
        return "chdb"
    found = [named] if named else glob.glob(f"{ROOT}/viewer/node_modules/@chdb/lib-*/libchdb.so")
    return found[0] if found and os.path.exists(found[0]) else None


class PackageEngine:
    """chDB as PyPI has it."""

    def __init__(self, folder):
        import chdb

        self.connection = chdb.connect(f"{folder}/data")

    def close(self):
        self.connection.close()

    def run(self, sql, format="TabSeparated"):
        """(answer, error) of one statement."""
        try:
            return self.connection.query(sql.decode() if isinstance(sql, bytes) else sql, format).bytes(), None
        except RuntimeError as error:
            return b"", str(error).encode()


class LibraryEngine:
    """chDB as npm has it: a library with an interface for C."""

    def __init__(self, folder):
        self.lib = ctypes.CDLL(library())
        self.lib.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        self.lib.chdb_close_conn.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
        self.lib.chdb_query_n.restype = ctypes.c_void_p
        self.lib.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        self.lib.chdb_result_buffer.restype = ctypes.c_void_p
        self.lib.chdb_result_length.restype = ctypes.c_size_t
        self.lib.chdb_result_error.restype = ctypes.c_char_p
        for name in ("chdb_result_buffer", "chdb_result_length", "chdb_result_error", "chdb_destroy_query_result"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p]
        arguments = (ctypes.c_char_p * 2)(b"clickhouse", f"--path={folder}/data".encode())
        connection = self.lib.chdb_connect(2, arguments)
        if not connection:
            raise RuntimeError("chDB does not start")
        self.opened, self.connection = connection, connection[0]

    def close(self):
        self.lib.chdb_close_conn(self.opened)

    def run(self, sql, format="TabSeparated"):
        """(answer, error) of one statement."""
        data = sql if isinstance(sql, bytes) else sql.encode()
        result = self.lib.chdb_query_n(self.connection, data, len(data), format.encode(), len(format))
        error = self.lib.chdb_result_error(result)
        answer = b"" if error else ctypes.string_at(self.lib.chdb_result_buffer(result) or 0, self.lib.chdb_result_length(result)) \
            if self.lib.chdb_result_length(result) else b""
        self.lib.chdb_destroy_query_result(result)
        return answer, error


class ChdbServer(clickhouse.Queries):
    def __init__(self, folder):
        self.engine = (PackageEngine if library() == "chdb" else LibraryEngine)(folder)
        self.run = self.engine.run
        self.folder = folder
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        """Before the interpreter ends, which the library does not survive with an open connection."""
        self.server.shutdown()
        self.engine.close()

    def query(self, sql, database="tlparse"):
        with self.lock:
            self.run(f"USE {database}")
            answer, error = self.run(sql)
        if error:
            raise RuntimeError(error.decode("utf-8", "replace"))
        return answer.decode()

    def cpu_s(self):
        """User and system time so far, of this process: the server is in it."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def handler(outer):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                url = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                sql = url.get("query", [""])[0].encode()
                with outer.lock:
                    answer, error = outer.run("USE `%s`" % url.get("database", ["default"])[0])
                    if not error and b" FORMAT " in sql and sql.startswith(b"INSERT"):
                        path = f"{outer.folder}/body"
                        with open(path, "wb") as file:
                            file.write(body)
                        head, format = sql.rsplit(b" FORMAT ", 1)
                        answer, error = outer.run(head + b" FROM INFILE '" + path.encode() + b"' COMPRESSION 'none' FORMAT " + format)
                    elif not error:
                        answer, error = outer.run(sql + body)
                answer = error if error else answer
                self.send_response(500 if error else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass
        return Handler
