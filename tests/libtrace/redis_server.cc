#include "tests/libtrace/redis_server.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/catch2.h"

namespace libtrace::testing {
namespace {

std::string OutputOf(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, count);
  pclose(pipe);
  return text;
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

bool HasProgram(const std::string& program) {
  const bool is_there = system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
  if (!is_there) WARN("skipped: " + program + " is not installed");
  return is_there;
}

RedisServer::RedisServer(Kind kind) : kind_(kind), socket_(directory_.string() + "/redis.sock") {
  if (kind == Kind::kTls) {
    MakeCertificates();
    port_ = FreePort();
  }
  std::ofstream(directory_.string() + "/hmac_key") << "a key for the tests only\n";
  std::ofstream(directory_.string() + "/users.acl")
      << "user default on >secret ~* &* +@all\n"
         "user tracer on >other ~libtrace:* -@all +get +set +exists +expire +del +hgetall +hset "
         "+hdel +auth\n"
         "user reader on >third ~libtrace:* -@all +get +hgetall +auth\n";
  Start();
}

void RedisServer::MakeCertificates() const {
  const std::string folder = directory_.string();
  const std::string make =
      "cd '" + folder +
      "' && { openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca "
      "-keyout ca.key -out ca.pem && openssl req -newkey rsa:2048 -nodes -subj /CN=localhost "
      "-keyout server.key -out server.csr && printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' "
      ">names && openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days "
      "2 -extfile names -out server.pem; } >/dev/null 2>&1";
  REQUIRE(system(make.c_str()) == 0);
}

std::vector<std::string> RedisServer::Arguments() const {
  const std::string folder = directory_.string();
  std::vector<std::string> words{"redis-server", "--port",    "0",
                                 "--save",       "",          "--dir",
                                 folder,         "--aclfile", folder + "/users.acl"};
  if (kind_ == Kind::kUnixSocket) {
    words.insert(words.end(), {"--unixsocket", socket_});
  } else {
    words.insert(words.end(),
                 {"--bind", "127.0.0.1", "--tls-port", std::to_string(port_), "--tls-cert-file",
                  folder + "/server.pem", "--tls-key-file", folder + "/server.key",
                  "--tls-ca-cert-file", folder + "/ca.pem", "--tls-auth-clients", "no"});
  }
  return words;
}

void RedisServer::Start() {
  std::vector<std::string> words = Arguments();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    execvp("redis-server", arguments.data());
    _exit(127);
  }
  // The socket is there before the server listens: ask until it answers.
  std::vector<StoredEntry> entries;
  Status status = Store()->List("tkey", entries);
  for (int i = 0; i < 1000 && !status.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    status = Store()->List("tkey", entries);
  }
  INFO(status.message());
  REQUIRE(status.ok());
}

void RedisServer::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void RedisServer::Pause() { REQUIRE(kill(pid_, SIGSTOP) == 0); }
void RedisServer::GoOn() { REQUIRE(kill(pid_, SIGCONT) == 0); }

RedisOptions RedisServer::options() const {
  RedisOptions options;
  options.unix_socket = socket_;
  options.password = "secret";
  options.hmac_key_file = directory_.string() + "/hmac_key";
  options.timeout = std::chrono::milliseconds(5000);
  options.retry_after = std::chrono::milliseconds(50);
  if (kind_ == Kind::kTls) {
    options.unix_socket.clear();
    options.port = port_;
    options.tls = true;
    options.tls_ca_file = directory_.string() + "/ca.pem";
  }
  return options;
}

std::shared_ptr<CacheStore> RedisServer::Store(const RedisOptions& options) {
  std::shared_ptr<CacheStore> store;
  const Status status = MakeRedisStore(options, store);
  INFO(status.message());
  REQUIRE(status.ok());
  return store;
}

std::string RedisServer::Ask(const std::string& command) const {
  return OutputOf("redis-cli --no-auth-warning -a secret -s '" + socket_ + "' " + command +
                  " 2>&1");
}

}  // namespace libtrace::testing
