#include "fleet/fleet_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>

#include "base/worker_threads.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_page.h"
#include "fleet/fleet_trend.h"
#include "fleet/pull.h"
#include "fleet/sql_quote.h"
#include "fleet/temporary_database.h"
#include "report/access.h"
#include "report/own_host.h"

namespace tlparse {

// The page of one pulled run, served by a thread of its own.
class OpenRun {
 public:
  static Result<std::unique_ptr<OpenRun>> Make(const FleetServerOptions& options,
                                               const std::string& run_id) {
    ASSIGN_OR_RETURN(std::unique_ptr<TemporaryDatabase> database, TemporaryDatabase::Make());
    PullOptions pull;
    pull.servers = options.servers;
    pull.run_id = run_id;
    pull.database_path = database->path();
    RETURN_IF_ERROR(Pull(pull));
    ServerOptions viewer = options.viewer;
    viewer.port = 0;
    ASSIGN_OR_RETURN(std::unique_ptr<ViewerServer> server,
                     ViewerServer::Create(database->path(), viewer));
    auto run = std::make_unique<OpenRun>(run_id, std::move(database), std::move(server));
    ASSIGN_OR_RETURN(run->thread_, StartThread([raw = run.get()] { raw->server_->Run(); }));
    return run;
  }
  OpenRun(std::string run_id, std::unique_ptr<TemporaryDatabase> database,
          std::unique_ptr<ViewerServer> server)
      : run_id_(std::move(run_id)), database_(std::move(database)), server_(std::move(server)) {}
  ~OpenRun() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  OpenRun(const OpenRun&) = delete;
  OpenRun& operator=(const OpenRun&) = delete;

  const std::string& run_id() const { return run_id_; }
  int port() const { return server_->port(); }

 private:
  std::string run_id_;
  std::unique_ptr<TemporaryDatabase> database_;
  std::unique_ptr<ViewerServer> server_;
  std::thread thread_;
};

namespace {

constexpr std::size_t kOpenRuns = 8;
constexpr std::int64_t kShownRuns = 500;

// The Host of a request without its port and brackets.
std::string HostName(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  const std::string name = has_port ? host.substr(0, colon) : host;
  return name.starts_with('[') ? name.substr(1, name.size() - 2) : name;
}

}  // namespace

class FleetServer::Impl {
 public:
  explicit Impl(FleetServerOptions options) : options_(std::move(options)) {}

  Result<void> Start() {
    RETURN_IF_ERROR(Jobs());
    server_.set_default_headers(
        {{"Content-Security-Policy",
          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'"},
         {"X-Content-Type-Options", "nosniff"},
         {"Referrer-Policy", "no-referrer"},
         {"Cache-Control", "no-store"}});
    server_.set_payload_max_length(1 << 10);
    server_.set_tcp_nodelay(true);
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          Route(request, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    const ServerOptions& viewer = options_.viewer;
    port_ = viewer.port == 0 ? server_.bind_to_any_port(viewer.host) : viewer.port;
    if (port_ <= 0 || (viewer.port != 0 && !server_.bind_to_port(viewer.host, viewer.port)))
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot listen on {} port {}: another program may use it; give "
                              "another --port",
                              viewer.host, viewer.port));
    return {};
  }

  std::string Url() const { return ServerUrl(options_.viewer.host, port_, options_.viewer.token); }
  void Run() {
    server_.listen_after_bind();
    open_.clear();
  }
  void Stop() { server_.stop(); }

 private:
  void Route(const httplib::Request& request, httplib::Response& response) {
    const std::string host = request.get_header_value("Host");
    if (!IsOwnHost(host, options_.viewer.host, port_))
      return Answer(response, 421, ErrorPage("This request names another host."));
    if (!HasAccess(request, response, options_.viewer.token, port_)) return;
    if (request.method != "GET" && request.method != "HEAD")
      return Answer(response, 405, ErrorPage("This server only reads."));
    constexpr std::string_view kRun = "/run/";
    const std::string name = request.get_param_value("name");
    if (request.path == "/") {
      Answer(response, Jobs());
    } else if (request.path == "/job") {
      Answer(response, Job(name));
    } else if (request.path == "/function") {
      Answer(response, Function(request.get_param_value("job"), name));
    } else if (request.path.rfind(kRun, 0) == 0 && IsUuid(request.path.substr(kRun.size()))) {
      const Result<int> port = OpenPort(request.path.substr(kRun.size()));
      if (!port) return Answer(response, Result<std::string>(tl::unexpected<Error>(port.error())));
      response.set_redirect(ServerUrl(HostName(host), *port, options_.viewer.token));
    } else {
      Answer(response, 404, ErrorPage("There is nothing here."));
    }
  }

  static void Answer(httplib::Response& response, int status, const std::string& page) {
    response.status = status;
    response.set_content(page, "text/html; charset=utf-8");
  }
  static void Answer(httplib::Response& response, const Result<std::string>& page) {
    if (page) return Answer(response, 200, *page);
    const ErrorCode code = page.error().code;
    Answer(response, code == ErrorCode::kNotFound ? 404 : 502, ErrorPage(page.error().message));
  }

  FleetQuestion Question(const std::string& job) const {
    FleetQuestion question;
    question.job = job;
    question.since_day = options_.since_day;
    return question;
  }

  Result<std::string> Jobs() {
    ASSIGN_OR_RETURN(FleetReader reader, FleetReader::Make(options_.servers));
    ASSIGN_OR_RETURN(
        const auto rows,
        reader.Rows(fmt::format("SELECT job, toString(uniqExact(run_id)), "
                                "toString(max(r)), toString(max(day)) AS d "
                                "FROM (SELECT job, run_id, day, sum(ranks) AS r "
                                "FROM {} WHERE state = 1 AND {} GROUP BY job, run_id, day) AS p "
                                "GROUP BY job ORDER BY d DESC, job LIMIT 1000",
                                reader.From("push"), reader.Live(Question(""))),
                    4));
    std::vector<FleetJob> jobs;
    for (const auto& row : rows)
      jobs.push_back({row[0], row[3], std::strtoll(row[1].c_str(), nullptr, 10),
                      std::strtoll(row[2].c_str(), nullptr, 10)});
    return JobsPage(jobs);
  }

  Result<std::string> Job(const std::string& job) {
    if (job.empty()) return Fail(ErrorCode::kNotFound, "No job is named.");
    ASSIGN_OR_RETURN(FleetReader reader, FleetReader::Make(options_.servers));
    FleetQuestion question = Question(job);
    question.limit = kShownRuns;
    ASSIGN_OR_RETURN(const std::vector<TrendRun> runs, ReadTrend(reader, question));
    if (runs.empty()) return Fail(ErrorCode::kNotFound, fmt::format("No run of job '{}'.", job));
    question.limit = 20;
    ASSIGN_OR_RETURN(const FleetAnswer functions, FleetTime(reader, question));
    return JobPage(job, runs, runs.size() == static_cast<std::size_t>(kShownRuns), functions);
  }

  Result<std::string> Function(const std::string& job, const std::string& function) {
    if (job.empty() || function.empty()) return Fail(ErrorCode::kNotFound, "No function is named.");
    ASSIGN_OR_RETURN(FleetReader reader, FleetReader::Make(options_.servers));
    FleetQuestion question = Question(job);
    question.function = function;
    ASSIGN_OR_RETURN(const FleetAnswer time, FleetTime(reader, question));
    return FunctionPage(job, function, time);
  }

  // The port of the page of a run, pulled if it is not open. One pull at a time.
  Result<int> OpenPort(const std::string& run_id) {
    const std::lock_guard lock(mutex_);
    for (auto run = open_.begin(); run != open_.end(); ++run) {
      if ((*run)->run_id() != run_id) continue;
      open_.splice(open_.begin(), open_, run);
      return open_.front()->port();
    }
    ASSIGN_OR_RETURN(std::unique_ptr<OpenRun> run, OpenRun::Make(options_, run_id));
    open_.push_front(std::move(run));
    if (open_.size() > kOpenRuns) open_.pop_back();
    return open_.front()->port();
  }

  FleetServerOptions options_;
  int port_ = 0;
  httplib::Server server_;
  std::mutex mutex_;                          // of open_
  std::list<std::unique_ptr<OpenRun>> open_;  // the one that was asked for last comes first
};

FleetServer::FleetServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FleetServer::~FleetServer() = default;

Result<std::unique_ptr<FleetServer>> FleetServer::Create(const FleetServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<FleetServer>(new FleetServer(std::move(impl)));
}

std::string FleetServer::url() const { return impl_->Url(); }
void FleetServer::Run() { impl_->Run(); }
void FleetServer::Stop() { impl_->Stop(); }

}  // namespace tlparse
