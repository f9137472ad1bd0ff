#include "fleet/clickhouse_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "base/ascii.h"
#include "fleet/no_pipe_signal.h"
#include "fleet/request_limit.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

// Of an answer that is kept whole: far more than any question here has, far less than would hurt.
constexpr std::size_t kMostAnswerBytes = std::size_t{256} << 20;
constexpr std::size_t kMostErrorBytes = 65536;
constexpr std::chrono::seconds kLongestConnect{10};  // then the next attempt
// RequestLimit ends a request before: what happens at one time must not happen twice.
constexpr std::chrono::hours kNoLimit{24};
constexpr std::chrono::milliseconds kLeastPatience{1000};  // for the last attempt

struct Place {
  bool is_https = false;
  std::string host;
};

Result<Place> ParseUrl(const ClickHouseOptions& options) {
  std::string_view rest = options.url;
  Place place;
  if (rest.substr(0, 8) == "https://") {
    place.is_https = true;
    rest.remove_prefix(8);
  } else if (rest.substr(0, 7) == "http://") {
    rest.remove_prefix(7);
  } else {
    return Fail(ErrorCode::kUsage,
                "--url is to be like https://host:8443 or http://127.0.0.1:8123");
  }
  if (rest.find('@') != std::string_view::npos)
    return Fail(
        ErrorCode::kUsage,
        "--url holds credentials, which every user of this machine can read: set "
        "TLPARSE_CLICKHOUSE_USER and TLPARSE_CLICKHOUSE_PASSWORD, or give --credentials FILE");
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?# \t\r\n") != std::string_view::npos)
    return Fail(ErrorCode::kUsage, "--url is to name a scheme, a host and a port, and no more");
  const bool is_v6 = rest.front() == '[';
  place.host = is_v6 ? std::string(rest.substr(1, rest.find(']') - 1))
                     : std::string(rest.substr(0, rest.find(':')));
  const bool is_loopback =
      place.host == "localhost" || place.host == "::1" || place.host.rfind("127.", 0) == 0;
  if (!place.is_https && !is_loopback && !options.allow_insecure)
    return Fail(ErrorCode::kUsage,
                fmt::format("'{}' is plain http to another machine: everyone on the way reads "
                            "credentials and code. Use https, or --insecure if that is meant",
                            options.url));
  return place;
}

std::string UrlEncoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (IsWordCharacter(c) || c == '-' || c == '.') {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string TextOf(httplib::Error error) {
  switch (error) {
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted, or names another host (--ca FILE names "
             "another authority)";
    case httplib::Error::SSLLoadingCerts:
      return "the authorities' certificates cannot be read";
    case httplib::Error::Connection:
      return "no connection";
    case httplib::Error::ConnectionTimeout:
      return "no connection in time";
    case httplib::Error::Read:
    case httplib::Error::Write:
      return "the connection was closed or took too long";
    case httplib::Error::SSLConnection:
      return "no TLS connection (is it a port for http?)";
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

Result<void> ReadCredentials(const std::string& file, ClickHouseOptions& options) {
  if (file.empty()) {
    if (const char* user = std::getenv("TLPARSE_CLICKHOUSE_USER")) options.user = user;
    if (const char* password = std::getenv("TLPARSE_CLICKHOUSE_PASSWORD"))
      options.password = password;
    return {};
  }
  struct stat status {};
  if (stat(file.c_str(), &status) != 0)
    return Fail(ErrorCode::kNotFound, fmt::format("there is no file '{}'", file));
  if ((status.st_mode & 077) != 0)
    return Fail(ErrorCode::kRefused,
                fmt::format("others may read the credentials in '{0}': chmod 600 '{0}'", file));
  std::ifstream in(file);
  if (!in) return Fail(ErrorCode::kIo, fmt::format("cannot read '{}'", file));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    if (line.rfind("user=", 0) == 0) {
      options.user = line.substr(5);
    } else if (line.rfind("password=", 0) == 0) {
      options.password = line.substr(9);
    } else {
      return Fail(ErrorCode::kUsage,
                  fmt::format("'{}' is to hold lines user=… and password=…", file));
    }
  }
  return {};
}

struct ClickHouseClient::Connection {
  enum class Purpose { kRequests, kAsking };

  explicit Connection(const ClickHouseOptions& given, Purpose purpose = Purpose::kRequests)
      : options(given),
        limit(purpose == Purpose::kAsking
                  ? RequestLimit::IsWorking()
                  : [this](const std::string& id) { return IsWorkingOn(id); }),
        http(given.url) {
    http.set_read_timeout(kNoLimit);
    http.set_write_timeout(kNoLimit);
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);  // else each small request waits 40 ms
    http.set_follow_location(false);
    http.set_socket_options([this](socket_t socket) { limit.SetSocket(socket); });
    http.set_decompress(true);
    http.enable_server_certificate_verification(true);
    if (!options.ca_file.empty()) http.set_ca_cert_path(options.ca_file);
    std::random_device device;
    random.seed(static_cast<std::uint64_t>(device()) << 32 | device());
  }
  ~Connection() {
    const NoPipeSignal no_signal;
    http.stop();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  httplib::Headers Headers() const {
    httplib::Headers headers{{"X-ClickHouse-User", options.user}, {"Accept-Encoding", "gzip"}};
    if (!options.password.empty()) headers.emplace("X-ClickHouse-Key", options.password);
    return headers;
  }

  // Whether the server works on the request. Not known is no.
  bool IsWorkingOn(const std::string& id) {
    if (!asking) {
      ClickHouseOptions short_options = options;
      short_options.patience = std::clamp<std::chrono::milliseconds>(
          options.patience / 4, std::chrono::milliseconds(250), std::chrono::seconds(5));
      asking = std::make_unique<Connection>(short_options, Purpose::kAsking);
    }
    std::string answer;
    const ServerResult<void> sent = asking->Post(
        fmt::format("SELECT count() FROM system.processes WHERE query_id = {} FORMAT TabSeparated",
                    QuoteText(id)),
        [&](std::string_view piece) {
          answer += piece;
          return answer.size() < 100;
        },
        true, asking->options.patience);
    return sent && answer.size() == 2 && answer[0] >= '1' && answer[0] <= '9';
  }

  std::string NewRequestId() { return fmt::format("tlparse-{:016x}{:016x}", random(), random()); }

  std::chrono::milliseconds Left(std::chrono::steady_clock::time_point began) const {
    const auto used = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
    return std::max(kLeastPatience, options.patience - used);
  }

  // `receive` gets the body of an answer with status 200; that of others becomes the error. The
  // server may be silent for `silence`.
  ServerResult<void> Send(httplib::Request request,
                          const std::function<bool(std::string_view)>& receive,
                          std::chrono::milliseconds silence) {
    int status = 0;
    std::string error_text;
    request.response_handler = [&](const httplib::Response& response) {
      status = response.status;
      limit.HeadersCame();
      return true;
    };
    bool is_ended = false;
    request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                   std::uint64_t) {
      limit.PieceCame();
      if (status == 200) {
        is_ended = !receive({data, size});
      } else {
        error_text.append(data, std::min(size, kMostErrorBytes - error_text.size()));
      }
      limit.WaitForPiece();
      return !is_ended && error_text.size() < kMostErrorBytes;
    };
    const NoPipeSignal no_signal;
    const std::string id = NewRequestId();
    request.path += "&query_id=" + id;
    // RequestLimit ends it first if the silence is shorter.
    http.set_connection_timeout(
        std::min<std::chrono::milliseconds>(kLongestConnect, silence + std::chrono::seconds(1)));
    if (const Result<void> begun = limit.Begin(silence, id); !begun)
      return tl::unexpected(ClickHouseError{0, 0, begun.error().message});
    const httplib::Result result = http.send(request);
    const RequestLimit::Ended ended = limit.End();
    if (is_ended) return tl::unexpected(ClickHouseError{0, 200, "the answer was too long"});
    if (!result && (status == 0 || status == 200))
      return tl::unexpected(FailureOf(result.error(), status, ended, silence));
    if (status != 200) {
      const int code = ExceptionCode(error_text);
      std::string text = ExceptionText(error_text);
      if (text.empty()) text = fmt::format("HTTP status {}", status);
      return tl::unexpected(ClickHouseError{code, status, std::move(text)});
    }
    return {};
  }

  // Of a request that was not answered, or not in full.
  ClickHouseError FailureOf(httplib::Error error, int status, RequestLimit::Ended ended,
                            std::chrono::milliseconds silence) const {
    const bool is_final =
        error == httplib::Error::SSLServerVerification || error == httplib::Error::SSLLoadingCerts;
    std::string text = status == 0 ? TextOf(error) : "the connection ended early";
    if (ended == RequestLimit::Ended::kHeaders) text = "it sends headers without end";
    if (ended == RequestLimit::Ended::kSilent)
      text = fmt::format("{} within {:.3g} s (--timeout)",
                         status == 0 ? "no answer" : "no more of the answer",
                         std::chrono::duration<double>(silence).count());
    return {is_final ? -1 : 0, 0, fmt::format("{}: {}", options.url, text)};
  }

  ServerResult<void> Post(std::string_view sql,
                          const std::function<bool(std::string_view)>& receive, bool wait,
                          std::chrono::milliseconds silence) {
    httplib::Request request;
    request.method = "POST";
    request.path = "/?enable_http_compression=1&database=" + UrlEncoded(options.database);
    // The server then buffers the answer, so that an error after the first rows has an error status.
    if (wait) request.path += "&wait_end_of_query=1";
    request.headers = Headers();
    request.set_header("Content-Type", "text/plain");
    request.body = std::string(sql);
    return Send(std::move(request), receive, silence);
  }

  ClickHouseOptions options;
  std::mt19937_64 random;
  std::unique_ptr<Connection> asking;  // used by the thread of `limit` alone
  RequestLimit limit;
  httplib::Client http;
};

ClickHouseClient::ClickHouseClient(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
ClickHouseClient::ClickHouseClient(ClickHouseClient&&) noexcept = default;
ClickHouseClient& ClickHouseClient::operator=(ClickHouseClient&&) noexcept = default;
ClickHouseClient::~ClickHouseClient() = default;

Result<ClickHouseClient> ClickHouseClient::Make(const ClickHouseOptions& options) {
  ASSIGN_OR_RETURN([[maybe_unused]] const Place place, ParseUrl(options));
  for (const std::string* text : {&options.user, &options.password})
    for (const char c : *text)
      if (static_cast<unsigned char>(c) < 0x20)
        return Fail(ErrorCode::kUsage, "user and password must not hold control characters");
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file))
    return Fail(ErrorCode::kNotFound, fmt::format("cannot read --ca '{}'", options.ca_file));
  auto connection = std::make_unique<Connection>(options);
  if (!connection->http.is_valid())
    return Fail(ErrorCode::kUsage, fmt::format("cannot use --url '{}'", options.url));
  return ClickHouseClient(std::move(connection));
}

const std::string& ClickHouseClient::database() const { return connection_->options.database; }
const std::string& ClickHouseClient::url() const { return connection_->options.url; }

Error ClickHouseClient::ToError(const ClickHouseError& error) const {
  if (error.status == 0)
    return {ErrorCode::kIo, fmt::format("the server does not answer: {}", error.message)};
  // No such column, identifier, table or database.
  const bool lacks = error.code == 16 || error.code == 47 || error.code == 60 || error.code == 81;
  return {ErrorCode::kRefused,
          fmt::format("{} refuses: {}{}", url(), error.message,
                      lacks ? "; 'tlparse fleet init' makes what an earlier tlparse did not" : "")};
}

bool ClickHouseClient::WaitToRetry(int attempt, std::chrono::steady_clock::time_point began) {
  const double random = std::uniform_real_distribution<double>(0, 1)(connection_->random);
  const std::chrono::milliseconds wait = Backoff(attempt, random);
  if (std::chrono::steady_clock::now() + wait - began > connection_->options.patience) return false;
  std::this_thread::sleep_for(wait);
  return true;
}

ServerResult<std::string> ClickHouseClient::TryQuery(std::string_view sql,
                                                     std::chrono::steady_clock::time_point began) {
  std::string answer;
  const ServerResult<void> sent = connection_->Post(
      sql,
      [&](std::string_view piece) {
        answer += piece;
        return answer.size() <= kMostAnswerBytes;
      },
      true, connection_->Left(began));
  if (!sent) return tl::unexpected(sent.error());
  return answer;
}

Result<std::string> ClickHouseClient::Query(std::string_view sql) {
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    ServerResult<std::string> answer = TryQuery(sql, began);
    if (answer) return std::move(*answer);
    if (RetryOf(answer.error().code, answer.error().status) == Retry::kNever ||
        !WaitToRetry(attempt, began)) {
      return tl::unexpected<Error>(ToError(answer.error()));
    }
  }
}

Result<void> ClickHouseClient::Stream(std::string_view sql,
                                      const std::function<bool(std::string_view)>& receive) {
  const ServerResult<void> sent =
      connection_->Post(sql, receive, false, connection_->options.patience);
  if (!sent) return tl::unexpected<Error>(ToError(sent.error()));
  return {};
}

ServerResult<void> ClickHouseClient::TryInsert(const std::string& sql, const std::string& gzip,
                                               std::chrono::steady_clock::time_point began) {
  httplib::Request request;
  request.method = "POST";
  request.path =
      "/?database=" + UrlEncoded(connection_->options.database) + "&query=" + UrlEncoded(sql);
  request.headers = connection_->Headers();
  request.set_header("Content-Type", "application/octet-stream");
  request.set_header("Content-Encoding", "gzip");
  request.body = gzip;
  return connection_->Send(
      std::move(request), [](std::string_view) { return true; }, connection_->Left(began));
}

}  // namespace tlparse
