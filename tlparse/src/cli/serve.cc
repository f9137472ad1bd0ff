// tlparse serve <db | directory>: the viewer over HTTP.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "report/server.h"

namespace tlparse {

namespace {

// Where people expect the page: links stay good from one call to the next.
constexpr int kUsualPort = 8577;

Result<std::unique_ptr<ViewerServer>> Listen(const std::string& database, ServerOptions options,
                                             bool is_port_given) {
  if (is_port_given) return ViewerServer::Create(database, options);
  options.port = kUsualPort;
  auto server = ViewerServer::Create(database, options);
  if (server || server.error().code != ErrorCode::kIo) return server;
  options.port = 0;
  return ViewerServer::Create(database, options);
}

// The path of the database, checked by opening it.
Result<std::string> FindDatabase(const std::string& path) {
  ASSIGN_OR_RETURN(const Database database, OpenAnswerDatabase(path));
  return database.path();
}

// Serves until Ctrl+C (or SIGTERM). The signals are blocked in every thread and awaited in one: a
// handler could not stop a server.
void RunUntilSignal(ViewerServer& server) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.Stop();
  });
  server.Run();
  pthread_kill(waiter.native_handle(), SIGTERM);  // if Run ended by itself
  waiter.join();
}

}  // namespace

int RunServe(std::span<const std::string> arguments) {
  Arguments app(
      "Serve the report as a page, with the database behind it and an SQL console. Reads only.",
      "serve");
  std::string path;
  ServerOptions options;
  app.Add("database", path, "a trace.db, or an output directory of tlparse").Required();
  const Arguments::Option port =
      app.Add("--port", options.port,
              fmt::format("port (default: {}, or any that is free)", kUsualPort))
          .Between(0, 65535);
  app.Add("--host", options.host,
          "address to listen on (default: 127.0.0.1, this machine only). Whoever can reach "
          "it reads everything in the trace");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<std::string> database = FindDatabase(path);
  if (!database) return ReportError(database.error());
  Result<std::unique_ptr<ViewerServer>> server = Listen(*database, options, port.WasGiven());
  if (!server) return ReportError(server.error());
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "serving %s, Ctrl+C ends it\n", Printable(*database).c_str());
  RunUntilSignal(**server);
  return kExitDone;
}

}  // namespace tlparse
