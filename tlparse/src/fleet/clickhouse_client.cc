#include "fleet/clickhouse_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "fleet/header_guard.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

// Of an answer that is kept whole: far more than any question here has, far less than would hurt.
constexpr std::size_t kMostAnswerBytes = std::size_t{256} << 20;
constexpr std::size_t kMostErrorBytes = 65536;
constexpr time_t kConnectSeconds = 10;
constexpr time_t kReadSeconds = 300;

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
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
        (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-' || byte == '.') {
      encoded += c;
    } else {
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

Retry RetryOf(int code, int status) {
  switch (code) {
    case 159:  // TIMEOUT_EXCEEDED
    case 202:  // TOO_MANY_SIMULTANEOUS_QUERIES
    case 209:  // SOCKET_TIMEOUT
    case 210:  // NETWORK_ERROR
    case 241:  // MEMORY_LIMIT_EXCEEDED
    case 242:  // TABLE_IS_READ_ONLY, while a replica starts
    case 252:  // TOO_MANY_PARTS
    case 319:  // UNKNOWN_STATUS_OF_INSERT
    case 364:  // too many requests of one user
      return Retry::kLater;
    case 0:
      break;
    default:  // a negative one: the certificate is not trusted
      return Retry::kNever;
  }
  return status == 0 || status == 408 || status == 425 || status == 429 || status >= 502
             ? Retry::kLater
             : Retry::kNever;
}

int ExceptionCode(std::string_view answer) {
  const std::size_t place = answer.find("Code: ");
  if (place == std::string_view::npos) return 0;
  int code = 0;
  for (std::size_t i = place + 6; i < answer.size() && answer[i] >= '0' && answer[i] <= '9'; ++i) {
    code = code * 10 + (answer[i] - '0');
    if (code > 1'000'000) return 0;
  }
  return code;
}

std::string ExceptionText(std::string_view answer) {
  std::string text(answer.substr(0, 4000));
  // "Code: 60, e.displayText() = DB::Exception: Table … doesn't exist., e.what() = DB::Exception"
  if (const std::size_t what = text.find(", e.what()"); what != std::string::npos)
    text.resize(what);
  if (const std::size_t display = text.find("e.displayText() = DB::Exception: ");
      display != std::string::npos) {
    text.erase(display, std::string_view("e.displayText() = DB::Exception: ").size());
  }
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (text.size() > 400) {
    text.resize(400);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
      text.pop_back();
    text += "…";
  }
  return text;
}

std::chrono::milliseconds Backoff(int attempt, double random) {
  const double most =
      std::min(20'000.0, 200.0 * static_cast<double>(1U << std::min(attempt - 1, 10)));
  return std::chrono::milliseconds(static_cast<std::int64_t>(most * (0.1 + 0.9 * random)));
}

struct ClickHouseClient::Connection {
  explicit Connection(const ClickHouseOptions& given) : options(given), http(given.url) {
    http.set_connection_timeout(kConnectSeconds);
    http.set_read_timeout(kReadSeconds);
    http.set_write_timeout(kReadSeconds);
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);  // else each small request waits 40 ms
    http.set_follow_location(false);
    http.set_socket_options([this](socket_t socket) { guard.SetSocket(socket); });
    http.set_decompress(true);
    http.enable_server_certificate_verification(true);
    if (!options.ca_file.empty()) http.set_ca_cert_path(options.ca_file);
    std::random_device device;
    random.seed(static_cast<std::uint64_t>(device()) << 32 | device());
  }

  httplib::Headers Headers() const {
    httplib::Headers headers{{"X-ClickHouse-User", options.user}, {"Accept-Encoding", "gzip"}};
    if (!options.password.empty()) headers.emplace("X-ClickHouse-Key", options.password);
    return headers;
  }

  // `receive` gets the body of an answer with status 200; that of others becomes the error.
  ServerResult<void> Send(httplib::Request request,
                          const std::function<bool(std::string_view)>& receive) {
    int status = 0;
    std::string error_text;
    request.response_handler = [&](const httplib::Response& response) {
      status = response.status;
      guard.End();
      return true;
    };
    bool is_ended = false;
    request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t,
                                   std::uint64_t) {
      if (status != 200) {
        error_text.append(data, std::min(size, kMostErrorBytes - error_text.size()));
        return error_text.size() < kMostErrorBytes;
      }
      is_ended = !receive({data, size});
      return !is_ended;
    };
    guard.Begin();
    const httplib::Result result = http.send(request);
    guard.End();
    if (is_ended) return tl::unexpected(ClickHouseError{0, 200, "the answer was too long"});
    if (!result && status == 0) {
      const bool is_final = result.error() == httplib::Error::SSLServerVerification ||
                            result.error() == httplib::Error::SSLLoadingCerts;
      return tl::unexpected(ClickHouseError{
          is_final ? -1 : 0, 0, fmt::format("{}: {}", options.url, TextOf(result.error()))});
    }
    if (!result && status == 200)
      return tl::unexpected(
          ClickHouseError{0, 0, fmt::format("{}: the connection ended early", options.url)});
    if (status != 200) {
      const int code = ExceptionCode(error_text);
      std::string text = ExceptionText(error_text);
      if (text.empty()) text = fmt::format("HTTP status {}", status);
      return tl::unexpected(ClickHouseError{code, status, std::move(text)});
    }
    return {};
  }

  ServerResult<void> Post(std::string_view sql,
                          const std::function<bool(std::string_view)>& receive, bool wait) {
    httplib::Request request;
    request.method = "POST";
    request.path = "/?enable_http_compression=1&database=" + UrlEncoded(options.database);
    // The server then buffers the answer, so that an error after the first rows has an error status.
    if (wait) request.path += "&wait_end_of_query=1";
    request.headers = Headers();
    request.set_header("Content-Type", "text/plain");
    request.body = std::string(sql);
    return Send(std::move(request), receive);
  }

  ClickHouseOptions options;
  HeaderGuard guard;
  httplib::Client http;
  std::mt19937_64 random;
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

ServerResult<std::string> ClickHouseClient::TryQuery(std::string_view sql) {
  std::string answer;
  const ServerResult<void> sent = connection_->Post(
      sql,
      [&](std::string_view piece) {
        answer += piece;
        return answer.size() <= kMostAnswerBytes;
      },
      true);
  if (!sent) return tl::unexpected(sent.error());
  return answer;
}

Result<std::string> ClickHouseClient::Query(std::string_view sql) {
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    ServerResult<std::string> answer = TryQuery(sql);
    if (answer) return std::move(*answer);
    if (RetryOf(answer.error().code, answer.error().status) == Retry::kNever ||
        !WaitToRetry(attempt, began)) {
      return tl::unexpected<Error>(ToError(answer.error()));
    }
  }
}

Result<void> ClickHouseClient::Stream(std::string_view sql,
                                      const std::function<bool(std::string_view)>& receive) {
  const ServerResult<void> sent = connection_->Post(sql, receive, false);
  if (!sent) return tl::unexpected<Error>(ToError(sent.error()));
  return {};
}

ServerResult<void> ClickHouseClient::TryInsert(const std::string& sql, const std::string& gzip) {
  httplib::Request request;
  request.method = "POST";
  request.path =
      "/?database=" + UrlEncoded(connection_->options.database) + "&query=" + UrlEncoded(sql);
  request.headers = connection_->Headers();
  request.set_header("Content-Type", "application/octet-stream");
  request.set_header("Content-Encoding", "gzip");
  request.body = gzip;
  return connection_->Send(std::move(request), [](std::string_view) { return true; });
}

}  // namespace tlparse
