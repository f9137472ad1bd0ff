#include "report/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "facts/job/read_transaction.h"
#include "report/access.h"
#include "report/live_state.h"
#include "report/own_host.h"
#include "report/responses.h"
#include "report/served_database.h"
#include "report/served_page.h"
#include "report/timeline/timeline.h"
#include "report/viewer/data.h"
#include "report/viewer/export.h"
#include "report/viewer/search.h"
#include "store/known_answers.h"

namespace tlparse {
namespace {

std::optional<std::int64_t> NumberOf(const httplib::Request& request, const char* name) {
  const std::string text = request.get_param_value(name);
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(text);
}

// Any text: it is a key, and short.
std::string PageOf(const httplib::Request& request) {
  return request.get_param_value("page").substr(0, 32);
}

constexpr const char* kJson = "application/json";

// A connection holds its thread while it is open: more than a browser opens, beside all queries.
constexpr std::size_t kThreads = 16;
constexpr std::size_t kMostChunks = 200;  // of one request
constexpr const char* kCompleting = "tlparse is completing the database; ask again in a moment";

}  // namespace

class ViewerServer::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {}

  Result<void> Start(const std::string& path) {
    if (ViewerPage().empty())
      return Fail(ErrorCode::kUsage,
                  "this tlparse was built without the viewer (TRACEKIT_BUILD_VIEWER)");
    databases_.emplace_back().path = path;
    for (const std::string& other : options_.beside) databases_.emplace_back().path = other;
    for (ServedDatabase& one : databases_) {
      RETURN_IF_ERROR(OpenDatabase(one));
      one.consoles = std::make_unique<Consoles>(one.path, options_);
    }
    NameDatabases();
    page_ = MakeServedPage(options_.live);
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

  Result<void> OpenDatabase(ServedDatabase& one) {
    ++opened_;
    return one.Open(options_.live ? std::optional(options_.live->run_id()) : std::nullopt);
  }

  // A page of one database among several compares its runs with theirs.
  void NameDatabases() {
    for (const ServedDatabase& one : databases_) paths_.push_back(one.path);
    if (databases_.size() < 2) return;
    const std::vector<std::string> names = NamesOfPaths(paths_);
    for (std::size_t i = 0; i < names.size(); ++i)
      named_.push_back({static_cast<std::int64_t>(i) + 1, names[i], &*databases_[i].database});
  }

  void Release() {
    for (ServedDatabase& one : databases_) one.consoles->Release();
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    for (ServedDatabase& one : databases_) one.Close();
  }

  void Resume() {
    for (ServedDatabase& one : databases_) one.consoles->Resume();
    const std::lock_guard lock(mutex_);
    is_released_ = false;
  }

  void Configure() {
    server_.set_default_headers(HeadersOf(page_));
    server_.set_payload_max_length(256 << 10);
    server_.set_keep_alive_max_count(1000);
    server_.set_tcp_nodelay(true);
    server_.set_read_timeout(10);
    // An open connection holds up the end of the server.
    if (options_.live != nullptr) server_.set_keep_alive_timeout(1);
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // Paths are compared as text: the routes of httplib are regular expressions, which would run on
    // any path that a client sends.
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
    if (!HasAccess(request, response, options_.token, port_)) return Handled;
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
    } else if (request.path == "/api/search") {
      Search(request, response);
    } else if (request.path == "/api/timeline.json") {
      Timeline(request, response);
    } else if (constexpr std::string_view kChunk = "/api/chunk/";
               request.path.rfind(kChunk, 0) == 0) {
      Chunk(request, std::string_view(request.path).substr(kChunk.size()), response);
    } else if (options_.live != nullptr && request.path == "/api/live") {
      Send(response, options_.live->Wait(NumberOf(request, "after").value_or(0), PageOf(request)),
           kJson);
    } else if (options_.live != nullptr && request.path == "/api/chunks") {
      Chunks(request, response);
    } else {
      Refuse(response, 404, "there is nothing here");
    }
    return Handled;
  }

  // The database that a request names, or the first; nullptr: there is none such.
  ServedDatabase* Asked(const httplib::Request& request) {
    const auto number = static_cast<std::size_t>(NumberOf(request, "db").value_or(1));
    return number < 1 || number > databases_.size() ? nullptr : &databases_[number - 1];
  }

  // As Asked; without one the response is made.
  ServedDatabase* AskedOrRefuse(const httplib::Request& request, httplib::Response& response) {
    ServedDatabase* const one = Asked(request);
    if (one == nullptr) Refuse(response, 404, "no such database is served");
    return one;
  }

  // The database in its present state; with the lock held. That of a watch changes: what was kept of
  // an earlier state is dropped.
  Result<Database*> CurrentDatabase(ServedDatabase& one) {
    if (is_released_) return Fail(ErrorCode::kRefused, kCompleting);
    if (options_.live != nullptr) one.runs.clear();
    if (!one.database) RETURN_IF_ERROR(OpenDatabase(one));
    if (options_.live != nullptr) one.database->ResetKept();
    return &*one.database;
  }

  // The data of a run, from the current database; with the lock held.
  Result<ViewerData*> DataOf(ServedDatabase& one, std::int64_t run) {
    auto entry = one.runs.find(run);
    if (entry == one.runs.end()) {
      ASSIGN_OR_RETURN(ViewerData opened, ViewerData::Open(*one.database, run));
      entry = one.runs.emplace(run, std::move(opened)).first;
    }
    entry->second.set_served(named_);
    const bool is_watched = options_.live != nullptr && run == options_.live->run_id();
    entry->second.set_watched(is_watched
                                  ? options_.live->watched()
                                  : WatchedJob{.live = {}, .world_size = options_.world_size});
    return &entry->second;
  }

  void Chunk(const httplib::Request& request, std::string_view name, httplib::Response& response) {
    ServedDatabase* const asked = AskedOrRefuse(request, response);
    if (asked == nullptr) return;
    const KnownAnswers::Question question = {asked->path, request.get_param_value("run"),
                                             std::string(name)};
    // What is known waits for no chunk that is being made.
    if (auto known = KnownChunk(question)) return Send(response, std::move(known), kJson);
    const std::lock_guard lock(mutex_);
    if (auto known = KnownChunk(question)) return Send(response, std::move(known), kJson);
    const DatabaseState before = StateOfDatabases(paths_);
    const auto database = CurrentDatabase(*asked);
    if (!database) return Refuse(response, database.error());
    const auto data = DataOf(*asked, NumberOf(request, "run").value_or(asked->latest_run));
    if (!data) return Refuse(response, data.error());
    auto json = (*data)->Chunk(name);
    if (!json) return Refuse(response, json.error());
    const auto chunk = std::make_shared<const std::string>(std::move(*json));
    if (options_.live == nullptr) known_.Keep(before, question, chunk);
    Send(response, chunk, kJson);
  }

  // As it was made before, while the databases are as they were; nullptr: it has to be made. Of a
  // watch it has more to show than the database.
  std::shared_ptr<const std::string> KnownChunk(const KnownAnswers::Question& question) {
    if (options_.live != nullptr) return nullptr;
    return known_.Find(StateOfDatabases(paths_), question);
  }

  void Chunks(const httplib::Request& request, httplib::Response& response) {
    options_.live->Note(PageOf(request));
    std::vector<std::string> names;
    const std::string text = request.get_param_value("names");
    for (std::string_view rest = text; !rest.empty();) {
      names.emplace_back(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), names.back().size() + 1));
    }
    if (names.empty() || names.size() > kMostChunks)
      return Refuse(response, 400, fmt::format("ask for 1 to {} chunks", kMostChunks));
    const std::lock_guard lock(mutex_);
    auto json = Together(names);
    if (!json) return Refuse(response, json.error());
    Send(response, std::move(*json), kJson);
  }

  // Chunks as one state of the database has them; with the lock held.
  Result<std::string> Together(const std::vector<std::string>& names) {
    // Before the state is chosen, so that the state is never older than the time that is shown.
    const std::int64_t revision = options_.live->revision();
    const std::int64_t looked_at_us = options_.live->looked_at_us();
    ServedDatabase& followed = databases_.front();
    ASSIGN_OR_RETURN(Database* const database, CurrentDatabase(followed));
    ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(*database));
    ASSIGN_OR_RETURN(const std::int64_t version, database->QueryInt("PRAGMA data_version"));
    ASSIGN_OR_RETURN(ViewerData* const data, DataOf(followed, options_.live->run_id()));
    JsonWriter json, errors;
    json.BeginObject().Key("state").String(fmt::format("{}.{}", opened_, version));
    json.Key("revision").Int(revision).Key("looked_at_us").Int(looked_at_us);
    json.Key("chunks").BeginObject();
    errors.BeginObject();
    for (const std::string& name : names) {
      if (auto chunk = data->Chunk(name)) {
        json.Key(name).Raw(*chunk);
      } else {
        errors.Key(name).String(chunk.error().message);
      }
    }
    json.EndObject().Key("errors").Raw(errors.EndObject().text()).EndObject();
    return json.Take();
  }

  void Timeline(const httplib::Request& request, httplib::Response& response) {
    if (IsReleased()) return Refuse(response, 503, kCompleting);
    const ServedDatabase* const asked = AskedOrRefuse(request, response);
    if (asked == nullptr) return;
    auto opened = Database::Open(asked->path, Database::Mode::kReadOnly);
    if (!opened) return Refuse(response, opened.error());
    const auto database = std::make_shared<Database>(std::move(*opened));
    TimelineOptions options;
    options.run_id = NumberOf(request, "run").value_or(asked->latest_run);
    response.set_header("Content-Disposition", "attachment; filename=\"timeline.json\"");
    // A download, of a type that httplib does not compress.
    constexpr const char* kBytes = "application/octet-stream";
    response.set_chunked_content_provider(
        kBytes, [database, options](std::size_t, httplib::DataSink& sink) {
          const auto written =
              WriteTimeline(*database, options, [&](std::string_view piece) -> Result<void> {
                if (sink.write(piece.data(), piece.size())) return {};
                return Fail(ErrorCode::kIo, "the connection is closed");
              });
          // Without an end the connection is cut: half a file must not look whole.
          if (written) sink.done();
          return written.has_value();
        });
  }

  void Search(const httplib::Request& request, httplib::Response& response) {
    if (IsReleased()) return Refuse(response, 503, kCompleting);
    const ServedDatabase* const asked = AskedOrRefuse(request, response);
    if (asked == nullptr) return;
    // A search has its own connection: other requests do not wait for it.
    auto database = Database::Open(asked->path, Database::Mode::kReadOnly);
    if (!database) return Refuse(response, database.error());
    auto answer = SearchAnswer(*database, NumberOf(request, "run").value_or(asked->latest_run),
                               request.get_param_value("text"), request.get_param_value("kind"));
    if (!answer) return Refuse(response, answer.error());
    Send(response, std::move(*answer), kJson);
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
    const ServedDatabase* const asked = AskedOrRefuse(request, response);
    if (asked == nullptr) return;
    auto answer = asked->consoles->Run(sql);
    if (!answer) return Refuse(response, answer.error());
    Send(response, std::move(*answer), kJson);
  }

  bool IsReleased() {
    const std::lock_guard lock(mutex_);
    return is_released_;
  }

  ServerOptions options_;
  int port_ = 0;
  ServedPage page_;
  std::vector<std::string> paths_;  // of the databases
  KnownAnswers known_;              // chunks
  std::mutex mutex_;                // of what follows
  bool is_released_ = false;
  std::int64_t opened_ = 0;  // how often a database was
  std::deque<ServedDatabase> databases_;
  std::vector<NamedDatabase> named_;
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
  return ServerUrl(impl_->options_.host, port(), impl_->options_.token);
}

void ViewerServer::Run() { impl_->server_.listen_after_bind(); }
void ViewerServer::Release() { impl_->Release(); }
void ViewerServer::Resume() { impl_->Resume(); }
void ViewerServer::Stop() {
  for (ServedDatabase& one : impl_->databases_) one.consoles->Stop();
  if (impl_->options_.live != nullptr) impl_->options_.live->Stop();
  impl_->server_.stop();
}

}  // namespace tlparse
