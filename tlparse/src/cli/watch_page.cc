#include "cli/watch_page.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <utility>

#include "base/worker_threads.h"
#include "cli/listen.h"
#include "queries/cli/watch_view.h"
#include "report/access.h"
#include "store/database.h"

namespace tlparse {

namespace {

// Blocks all signals in this thread while it lives. Threads started meanwhile inherit that: a signal
// that ends the watch must reach its main thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

bool ParsePort(std::string_view digits, int& port) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port >= 0 && port < 65536;
}

}  // namespace

Result<ServeAddress> ParseServeAddress(const std::string& text) {
  ServeAddress address;
  int port = 0;
  if (ParsePort(text, port)) {
    address.port = port;
    return address;
  }
  if (text.empty()) return address;
  std::string_view host = text;
  const std::size_t colon = text.rfind(':');
  const bool is_bare_ipv6 = text.front() != '[' && text.find(':') != colon;
  if (colon != std::string::npos && !is_bare_ipv6 && text.back() != ']') {
    if (!ParsePort(host.substr(colon + 1), port))
      return Fail(ErrorCode::kUsage,
                  fmt::format("--serve '{}': give an address as in 127.0.0.1:8577", text));
    address.port = port;
    host = host.substr(0, colon);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (!host.empty()) address.host = host;
  return address;
}

Result<std::unique_ptr<WatchPage>> WatchPage::Start(const std::string& address,
                                                    const std::string& source,
                                                    const std::string& database_path,
                                                    std::int64_t run_id) {
  ASSIGN_OR_RETURN(const ServeAddress parsed, ParseServeAddress(address));
  std::string uuid;
  {
    ASSIGN_OR_RETURN(Database database, Database::Open(database_path, Database::Mode::kReadOnly));
    ASSIGN_OR_RETURN(const FirstRow<UuidOfRun> row, First(Query<UuidOfRun>(database, {run_id})));
    if (row) uuid = row->uuid;
  }
  std::unique_ptr<WatchPage> page(new WatchPage);
  page->database_path_ = database_path;
  page->state_ =
      std::make_unique<LiveState>(LiveState::WatchedRun{run_id, uuid, source, database_path});
  ServerOptions options;
  if (parsed.host) options.host = *parsed.host;
  options.token = TokenFor(options.host);
  options.live = page->state_.get();
  auto server = Listen(parsed.port, [&](int port) {
    options.port = port;
    return ViewerServer::Create(database_path, options);
  });
  if (!server) return tl::unexpected<Error>(std::move(server).error());
  page->server_ = std::move(*server);
  const SignalsBlocked blocked;
  ASSIGN_OR_RETURN(page->thread_, StartThread([raw = page.get()] { raw->server_->Run(); }));
  return page;
}

WatchPage::~WatchPage() {
  if (!thread_.joinable()) return;
  server_->Stop();
  thread_.join();
}

void WatchPage::BeginEnd() {
  state_->SetEnding();
  server_->Release();
}

void WatchPage::End(const std::string& why, const std::string& index) {
  server_->Resume();
  const bool has_index = !index.empty() && access(index.c_str(), F_OK) == 0;
  state_->SetEnd(fmt::format(
      "The job is not followed any more: {}. What its logs held by then stays in {}{}.", why,
      database_path_, has_index ? fmt::format(", and as a page in {}", index) : ""));
  state_->WaitUntilEndIsKnown();
}

}  // namespace tlparse
