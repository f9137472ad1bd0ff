#include "report/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <simdjson.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "report/viewer/data.h"
#include "report/viewer/events.h"
#include "report/viewer/export.h"
#include "report/viewer/sql.h"

namespace tlparse {
namespace {

bool IsAddress(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.substr(0, 4) == "127.";
}

// The page as it is served: it asks the API, and the policy that stands in it becomes a header too,
// where it can say more.
struct ServedPage {
  std::string html;
  std::string policy;
};

ServedPage MakePage() {
  ServedPage page{std::string(ViewerPage()), {}};
  constexpr std::string_view kStatic = "data-source=\"static\"";
  if (const std::size_t at = page.html.find(kStatic); at != std::string::npos) {
    page.html.replace(at, kStatic.size(), "data-source=\"api\"");
  }
  constexpr std::string_view kMeta = "http-equiv=\"Content-Security-Policy\" content=\"";
  if (const std::size_t at = page.html.find(kMeta); at != std::string::npos) {
    const std::size_t start = at + kMeta.size();
    page.policy =
        page.html.substr(start, page.html.find('"', start) - start) + "; frame-ancestors 'none'";
  }
  return page;
}

httplib::Headers DefaultHeaders(const std::string& policy) {
  return {{"Content-Security-Policy", policy},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUsage:
      return 400;
    case ErrorCode::kRefused:
      return 503;
    default:
      return 500;
  }
}

// Sends the body as it is. httplib would compress what it gets as content, at Brotli's highest
// level: a quarter of a second for the page, which a browser on the same machine does not get back.
void Send(httplib::Response& response, std::string body, const char* type) {
  auto shared = std::make_shared<const std::string>(std::move(body));
  response.set_content_provider(
      shared->size(), type,
      [shared](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        return sink.write(shared->data() + offset, length);
      });
}

void Refuse(httplib::Response& response, int status, std::string_view why) {
  response.status = status;
  response.set_content(fmt::format("{}\n", why), "text/plain; charset=utf-8");
}

std::optional<std::int64_t> RunOf(const httplib::Request& request) {
  const std::string text = request.get_param_value("run");
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(text);
}

constexpr const char* kJson = "application/json";

// A connection holds its thread while it is open: more than a browser opens, beside all queries.
constexpr std::size_t kThreads = 16;
constexpr std::size_t kRunningQueries = 2;
constexpr std::size_t kWaitingQueries = 2;

// The console's connections to the database. Queries are few at a time, so that however slow they
// are, threads and cores are left for the page.
class Consoles {
 public:
  Consoles(std::string path, ServerOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  // kRefused: too many queries are under way.
  Result<std::string> Run(std::string_view sql) {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Take());
    Result<std::string> answer = connection->console.Run(sql);
    const std::lock_guard lock(mutex_);
    std::erase(running_, connection->database.handle());
    idle_.push_back(std::move(connection));
    changed_.notify_one();
    return answer;
  }

  // Ends the queries that are under way.
  void Stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    for (sqlite3* database : running_) sqlite3_interrupt(database);
    changed_.notify_all();
  }

 private:
  struct Connection {
    Connection(Database opened, const ServerOptions& options)
        : database(std::move(opened)), console(database, options) {}
    Database database;
    SqlConsole console;
  };

  Result<std::unique_ptr<Connection>> Take() {
    std::unique_lock lock(mutex_);
    if (running_.size() == kRunningQueries && waiting_ == kWaitingQueries) {
      return Fail(ErrorCode::kRefused,
                  fmt::format("the console is busy with {} queries; try again when one has ended",
                              kRunningQueries + kWaitingQueries));
    }
    ++waiting_;
    changed_.wait(lock, [this] { return is_stopped_ || running_.size() < kRunningQueries; });
    --waiting_;
    if (is_stopped_) return Fail(ErrorCode::kRefused, "the server is ending");
    std::unique_ptr<Connection> connection;
    if (idle_.empty()) {
      ASSIGN_OR_RETURN(Database opened, Database::Open(path_, Database::Mode::kReadOnly));
      connection = std::make_unique<Connection>(std::move(opened), options_);
    } else {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
    running_.push_back(connection->database.handle());
    return connection;
  }

  std::string path_;
  ServerOptions options_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::vector<sqlite3*> running_;
  std::size_t waiting_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

bool IsOwnHost(std::string_view host_header, std::string_view host, int port) {
  if (host_header.empty()) return false;
  std::string name(host_header);
  // "[::1]:80" has its port behind the bracket, "::1" has none.
  const std::size_t colon = name.rfind(':');
  const bool has_port = colon != std::string::npos && name.find(']', colon) == std::string::npos &&
                        (name.front() == '[' || name.find(':') == colon);
  if (has_port) {
    if (name.substr(colon + 1) != std::to_string(port)) return false;
    name.resize(colon);
  } else if (port != 80) {
    return false;
  }
  if (name == "localhost" || name == host) return true;
  return IsLoopback(host) ? IsAddress(name) && IsLoopback(name) : IsAddress(name);
}

class ViewerServer::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {}

  Result<void> Start(const std::string& path) {
    if (ViewerPage().empty())
      return Fail(ErrorCode::kUsage,
                  "this tlparse was built without the viewer (TRACEKIT_BUILD_VIEWER)");
    path_ = path;
    ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kReadOnly));
    database_.emplace(std::move(database));
    ASSIGN_OR_RETURN(ViewerData latest, ViewerData::Open(*database_, std::nullopt));
    latest_run_ = latest.run_id();
    runs_.emplace(latest_run_, std::move(latest));
    consoles_.emplace(path, options_);
    page_ = MakePage();
    Configure();
    port_ = options_.port == 0 ? server_.bind_to_any_port(options_.host) : options_.port;
    if (port_ <= 0 || (options_.port != 0 && !server_.bind_to_port(options_.host, options_.port))) {
      return Fail(
          ErrorCode::kIo,
          fmt::format(
              "cannot listen on {} port {}: another program may use it; give another --port",
              options_.host, options_.port));
    }
    return {};
  }

  void Configure() {
    server_.set_default_headers(DefaultHeaders(page_.policy));
    server_.set_payload_max_length(256 << 10);
    server_.set_keep_alive_max_count(1000);
    server_.set_tcp_nodelay(true);
    server_.set_read_timeout(10);
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // Routed here by comparison: httplib would try regular expressions on whatever path comes in.
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return Route(request, response);
        });
    server_.Post("/api/sql", [this](const httplib::Request& request, httplib::Response& response) {
      Sql(request, response);
    });
  }

  httplib::Server::HandlerResponse Route(const httplib::Request& request,
                                         httplib::Response& response) {
    using enum httplib::Server::HandlerResponse;
    if (!IsOwnHost(request.get_header_value("Host"), options_.host, port_)) {
      Refuse(response, 421, "this request names another host");
      return Handled;
    }
    const std::string origin = request.get_header_value("Origin");
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    const bool is_api = request.path.rfind("/api/", 0) == 0;
    if ((!origin.empty() && origin != "http://" + request.get_header_value("Host")) ||
        (is_api && !site.empty() && site != "same-origin" && site != "none")) {
      Refuse(response, 403, "requests of other pages are refused");
      return Handled;
    }
    if (request.method == "POST" && request.path == "/api/sql")
      return Unhandled;  // its body is still to be read
    if (request.method != "GET" && request.method != "HEAD") {
      Refuse(response, 405, "this server only reads");
    } else if (request.path == "/" || request.path == "/index.html") {
      Send(response, page_.html, "text/html; charset=utf-8");
    } else if (request.path == "/api/chromium_events.json") {
      Events(request, response);
    } else if (constexpr std::string_view kChunk = "/api/chunk/";
               request.path.rfind(kChunk, 0) == 0) {
      Chunk(request, std::string_view(request.path).substr(kChunk.size()), response);
    } else {
      Refuse(response, 404, "there is nothing here");
    }
    return Handled;
  }

  void Chunk(const httplib::Request& request, std::string_view name, httplib::Response& response) {
    const std::lock_guard lock(mutex_);
    const std::int64_t run = RunOf(request).value_or(latest_run_);
    auto entry = runs_.find(run);
    if (entry == runs_.end()) {
      auto opened = ViewerData::Open(*database_, run);
      if (!opened) return Refuse(response, StatusOf(opened.error().code), opened.error().message);
      entry = runs_.emplace(run, std::move(*opened)).first;
    }
    auto json = entry->second.Chunk(name);
    if (!json) return Refuse(response, StatusOf(json.error().code), json.error().message);
    Send(response, std::move(*json), kJson);
  }

  void Events(const httplib::Request& request, httplib::Response& response) {
    auto opened = EventStream::Open(path_, RunOf(request).value_or(latest_run_));
    if (!opened) return Refuse(response, StatusOf(opened.error().code), opened.error().message);
    std::shared_ptr<EventStream> stream = std::move(*opened);
    response.set_header("Content-Disposition", "attachment; filename=\"chromium_events.json\"");
    // A download, of a type that httplib does not compress.
    constexpr const char* kBytes = "application/octet-stream";
    response.set_chunked_content_provider(kBytes, [stream](std::size_t, httplib::DataSink& sink) {
      auto piece = stream->Next();
      if (!piece) return false;  // the connection is cut: half a file must not look whole
      if (piece->empty()) {
        sink.done();
        return true;
      }
      return sink.write(piece->data(), piece->size());
    });
  }

  void Sql(const httplib::Request& request, httplib::Response& response) {
    // A form of another page could send text/plain without asking; JSON it cannot.
    if (request.get_header_value("Content-Type").rfind(kJson, 0) != 0)
      return Refuse(response, 415, "send application/json");
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    std::string_view sql;
    if (parser.parse(request.body).get(document) != simdjson::SUCCESS ||
        document["sql"].get(sql) != simdjson::SUCCESS) {
      return Refuse(response, 400, "send {\"sql\": \"SELECT …\"}");
    }
    auto answer = consoles_->Run(sql);
    if (!answer) return Refuse(response, StatusOf(answer.error().code), answer.error().message);
    Send(response, std::move(*answer), kJson);
  }

  ServerOptions options_;
  std::string path_;
  int port_ = 0;
  ServedPage page_;
  std::mutex mutex_;  // of database_ and runs_
  std::optional<Database> database_;
  std::map<std::int64_t, ViewerData> runs_;
  std::int64_t latest_run_ = 0;
  std::optional<Consoles> consoles_;
  httplib::Server server_;
};

ViewerServer::ViewerServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ViewerServer::~ViewerServer() = default;

Result<std::unique_ptr<ViewerServer>> ViewerServer::Create(const std::string& database_path,
                                                           const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  RETURN_IF_ERROR(impl->Start(database_path));
  return std::unique_ptr<ViewerServer>(new ViewerServer(std::move(impl)));
}

int ViewerServer::port() const { return impl_->port_; }

std::string ViewerServer::url() const {
  const std::string& host = impl_->options_.host;
  return host.find(':') == std::string::npos ? fmt::format("http://{}:{}/", host, port())
                                             : fmt::format("http://[{}]:{}/", host, port());
}

void ViewerServer::Run() { impl_->server_.listen_after_bind(); }
void ViewerServer::Stop() {
  impl_->consoles_->Stop();
  impl_->server_.stop();
}

}  // namespace tlparse
