// tlparse serve <db | directory>…: the viewer over HTTP.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/worker_threads.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_arguments.h"
#include "cli/listen.h"
#include "cli/terminal.h"
#include "fleet/fleet_server.h"
#include "report/access.h"
#include "report/server.h"
#include "store/database.h"
#include "store/schema.h"

namespace tlparse {

namespace {

constexpr int kMostDatabases = 8;

// The path of the database, checked by opening it.
Result<std::string> FindDatabase(const std::string& path) {
  ASSIGN_OR_RETURN(const Database database, OpenAnswerDatabase(path));
  return database.path();
}

// Serves until Ctrl+C (or SIGTERM). The signals are blocked in every thread and awaited in one: a
// handler could not stop a server. A second one does not wait for answers that are being made.
template <typename Server>
Result<void> RunUntilSignal(Server& server) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::atomic<bool> has_ended = false;
  ASSIGN_OR_RETURN(std::thread waiter, StartThread([&] {
                     int signal = 0;
                     sigwait(&signals, &signal);
                     if (has_ended) return;
                     server.Stop();
                     sigwait(&signals, &signal);
                     if (has_ended) return;
                     pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
                     raise(signal);
                   }));
  server.Run();
  has_ended = true;
  pthread_kill(waiter.native_handle(), SIGTERM);
  waiter.join();
  return {};
}

Result<void> CheckFile(const std::string& path) {
  ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kReadOnly));
  return CheckIsComplete(database);
}

int ServeDatabases(const std::vector<std::string>& paths, ServerOptions options,
                   std::optional<int> port) {
  std::vector<std::string> databases;
  for (const std::string& path : paths) {
    Result<std::string> database = FindDatabase(path);
    if (!database) return ReportError(database.error());
    if (const Result<void> complete = CheckFile(*database); !complete)
      return ReportError(complete.error());
    databases.push_back(std::move(*database));
  }
  options.beside.assign(databases.begin() + 1, databases.end());
  auto server = Listen(port, [&](int tried) {
    options.port = tried;
    return ViewerServer::Create(databases.front(), options);
  });
  if (!server) return ReportError(server.error());
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "serving %s, Ctrl+C ends it\n",
               Printable(fmt::format("{}", fmt::join(databases, ", "))).c_str());
  if (const Result<void> served = RunUntilSignal(**server); !served)
    return ReportError(served.error());
  return kExitDone;
}

int ServeFleet(const FleetArguments& fleet, const std::string& since, const ServerOptions& viewer,
               std::optional<int> port) {
  const std::optional<std::int64_t> since_s = ParseSince(since);
  if (!since_s)
    return ReportError(
        {ErrorCode::kUsage, fmt::format("'{}' is no time like 30d or 2026-11-22", since)});
  const Result<std::vector<ClickHouseOptions>> servers = fleet.Servers();
  if (!servers) return ReportFleetError(servers.error());
  FleetServerOptions options{*servers, std::max<std::int64_t>(0, *since_s / 86400), viewer};
  auto server = Listen(port, [&](int tried) {
    options.viewer.port = tried;
    return FleetServer::Create(options);
  });
  if (!server) return ReportFleetError(server.error());
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  std::fputs("serving the fleet, Ctrl+C ends it\n", stderr);
  if (const Result<void> served = RunUntilSignal(**server); !served)
    return ReportError(served.error());
  return kExitDone;
}

}  // namespace

int RunServe(std::span<const std::string> arguments) {
  Arguments app(
      "Serve the report as a page, with an SQL console; with --url the history of a fleet, with "
      "one dot per run that opens it. Databases are only read.",
      "serve");
  std::vector<std::string> paths;
  std::string since = "90d";
  ServerOptions options;
  FleetArguments fleet;
  app.Add("traces", paths,
          "a trace.db, or an output directory of tlparse; several: the page compares their runs "
          "(not with --url)")
      .Times(0, kMostDatabases);
  const Arguments::Option given =
      app.Add("--port", options.port,
              fmt::format("port (default: {}, or any that is free)", kUsualPort))
          .Between(0, 65535);
  app.Add("--host", options.host,
          "address to listen on (default: 127.0.0.1, this machine only). Beyond this machine the "
          "page wants the token that is printed with its address: who knows it, or reads the "
          "network (it is plain http), reads everything in the trace, or of the fleet");
  app.Add("--world-size", options.world_size,
          "expected number of ranks of the run (default: as many as the inputs show)")
      .Positive();
  fleet.timeout_s = 30;
  fleet.AddTo(app);
  app.Add("--since", since, "with --url: runs since then: 30d, or a day like 2026-11-22")
      .ShowDefault();
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (paths.empty() == fleet.urls.empty())
    return ReportError({ErrorCode::kUsage, "serve needs either a database or --url of a fleet"});
  options.token = TokenFor(options.host);
  const std::optional<int> port = given.WasGiven() ? std::optional(options.port) : std::nullopt;
  return paths.empty() ? ServeFleet(fleet, since, options, port)
                       : ServeDatabases(paths, options, port);
}

}  // namespace tlparse
