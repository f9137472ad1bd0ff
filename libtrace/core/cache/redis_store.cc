#include "libtrace/cache/cache_store.h"

#ifdef LIBTRACE_WITH_REDIS

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "core/cache/atomic_file.h"
#include "core/cache/byte_coder.h"
#include "core/cache/resp_connection.h"
#include "core/errno_scope.h"
#include "core/per_process.h"
#include "core/signal_guard.h"

namespace libtrace {
namespace {

using detail::RespConnection;
using detail::RespReply;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string_view>;

constexpr std::chrono::milliseconds kFirstBreak{100};
constexpr std::string_view kCompilingPrefix = "compiling:", kFinishedPrefix = "finished:";
constexpr std::chrono::milliseconds kFinishedMarkLives{10'000};

// One connection, and what happens when it breaks. Thread-safe: one command at a time.
class RedisLink {
 public:
  explicit RedisLink(RedisOptions options) : options_(std::move(options)) {}

  const RedisOptions& options() const { return options_; }

  // Not ok: no connection, or the server refuses. `types` are those that the reply may have.
  Status Ask(const Words& words, std::string_view types, RespReply& reply) {
    State& state = state_.get();
    std::unique_lock lock(state.mutex, std::try_to_lock);
    if (!lock.owns_lock()) {
      // Another thread talks to the server. While the breaker is open it only tries whether the
      // server is back; nobody waits for that.
      if (state.is_open) return Status::Error("Redis was not asked: it did not answer before");
      lock.lock();
    }
    return AskLocked(state, words, types, reply);
  }

 private:
  // A forked child has its own: it must not talk on its parent's connection, nor wait for a thread
  // of its parent's that does.
  struct State {
    std::atomic<bool> is_open{false};
    std::mutex mutex;  // guards what follows
    std::unique_ptr<RespConnection> connection;
    int failure_count = 0;
    Clock::time_point closed_until{};
    Status last_error;
  };

  Status AskLocked(State& state, const Words& words, std::string_view types, RespReply& reply) {
    const bool was_connected = state.connection != nullptr;
    if (!was_connected) {
      if (Status status = Connect(state); !status.ok()) return status;
    }
    Status status = state.connection->Ask(words, reply);
    if (!status.ok() && was_connected) {
      // The server may have been started again, or closed a connection that was idle.
      state.connection.reset();
      if (status = Connect(state); !status.ok()) return status;
      status = state.connection->Ask(words, reply);
    }
    if (!status.ok()) return Break(state, std::move(status));
    if (reply.type == '-') return Status::Error("Redis refuses: " + reply.text);
    if (types.find(reply.type) == std::string_view::npos)
      return Break(state, Status::Error("Redis answers something unexpected"));
    state.failure_count = 0;
    state.is_open = false;
    return {};
  }

  Status Connect(State& state) {
    if (Clock::now() < state.closed_until) return state.last_error;
    auto connection = std::make_unique<RespConnection>();
    if (Status status = connection->Connect(options_); !status.ok())
      return Break(state, std::move(status));
    state.connection = std::move(connection);
    return {};
  }

  // Gives the connection up and leaves the server alone for a while.
  Status Break(State& state, Status status) {
    state.connection.reset();
    const int doublings = std::min(state.failure_count++, 20);
    state.closed_until =
        Clock::now() + std::min(options_.retry_after, kFirstBreak * (1 << doublings));
    state.is_open = true;
    state.last_error = std::move(status);
    return state.last_error;
  }

  const RedisOptions options_;
  detail::PerProcess<State> state_;
};

// A lease on `<key>:claim`, renewed by a thread of its own as long as it is held.
class RedisClaim : public CacheClaim {
 public:
  RedisClaim(std::shared_ptr<RedisLink> link, std::string name, std::string token)
      : link_(std::move(link)), name_(std::move(name)), token_(std::move(token)), pid_(getpid()) {
    const detail::AllSignalsBlocked blocked;
    try {
      thread_ = std::thread([this] { Renew(); });
    } catch (...) {  // no thread: the lease ends by itself
    }
  }
  ~RedisClaim() override {
    const detail::ErrnoScope keeps_errno;
    if (pid_ != getpid()) {  // a forked child has neither the thread nor the claim
      if (thread_.joinable()) thread_.detach();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    is_changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    RespReply reply;
    if (is_finished_) {
      (void)link_->Ask({"SET", name_, std::string(kFinishedPrefix) + token_, "PX",
                        std::to_string(kFinishedMarkLives.count())},
                       "+", reply);
    } else {
      (void)link_->Ask({"DEL", name_}, ":", reply);
    }
  }
  void Finish() noexcept override { is_finished_ = true; }

 private:
  void Renew() {
    const std::string lease = std::to_string(link_->options().claim_lease.count());
    const std::string value = std::string(kCompilingPrefix) + token_;
    std::unique_lock lock(mutex_);
    while (
        !is_changed_.wait_for(lock, link_->options().claim_lease / 3, [&] { return is_done_; })) {
      lock.unlock();
      RespReply reply;
      (void)link_->Ask({"SET", name_, value, "XX", "PX", lease}, "+_", reply);
      lock.lock();
    }
  }

  std::shared_ptr<RedisLink> link_;
  const std::string name_, token_;
  const int pid_;
  bool is_finished_ = false;
  std::mutex mutex_;
  std::condition_variable is_changed_;
  bool is_done_ = false;
  std::thread thread_;
};

std::string NewToken() {
  std::random_device random;
  std::string token = std::to_string(getpid());
  for (int i = 0; i < 4; ++i) token.append(".").append(std::to_string(random()));
  return token;
}

class RedisStore : public CacheStore {
 public:
  explicit RedisStore(RedisOptions options)
      : link_(std::make_shared<RedisLink>(std::move(options))) {}

  Status List(std::string_view key, std::vector<StoredEntry>& entries) override {
    const detail::ErrnoScope keeps_errno;
    entries.clear();
    RespReply reply;
    if (Status status = link_->Ask({"HGETALL", NameOf(key)}, "*", reply); !status.ok())
      return status;
    for (size_t i = 0; i + 1 < reply.list.size(); i += 2) {
      detail::ByteReader reader(reply.list[i + 1].text);
      const uint64_t artifact_size_bytes = reader.U64();
      entries.push_back({reply.list[i].text, std::string(reader.rest()), artifact_size_bytes});
    }
    // Redis keeps no order: the same one everywhere at least.
    std::sort(entries.begin(), entries.end(), [](const StoredEntry& a, const StoredEntry& b) {
      return a.content_hash < b.content_hash;
    });
    return {};
  }

  Status Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) override {
    const detail::ErrnoScope keeps_errno;
    for (uint64_t i = 0; i < ChunkCount(entry); ++i) {
      RespReply reply;
      const std::string name = ChunkName(key, entry, i);
      if (Status status = link_->Ask({"GET", name}, "$_", reply); !status.ok()) return status;
      if (reply.type == '_')
        return Status::Error("Redis has no longer a part of the artifact: " + name);
      if (reply.text.size() > kArtifactChunkBytes || !sink(reply.text))
        return Status::Error("the transfer of an artifact was stopped");
    }
    return {};
  }

  Status Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) override {
    const detail::ErrnoScope keeps_errno;
    bool is_there = false;
    if (Status status = HasChunks(key, entry, is_there); !status.ok()) return status;
    if (!is_there) {
      if (Status status = PutChunks(key, entry, artifact); !status.ok()) return status;
    }
    std::string head;
    detail::PutU64(entry.artifact_size_bytes, head);
    head += entry.head;
    const std::string name = NameOf(key);
    RespReply reply;
    Status status = link_->Ask({"HSET", name, entry.content_hash, head}, ":", reply);
    return status.ok() ? Expire(name) : status;
  }

  Status Remove(std::string_view key) override {
    const detail::ErrnoScope keeps_errno;
    std::vector<StoredEntry> entries;
    if (Status status = List(key, entries); !status.ok()) return status;
    for (const StoredEntry& entry : entries) {
      if (Status status = RemoveEntry(key, entry); !status.ok()) return status;
    }
    return {};
  }

  Status RemoveEntry(std::string_view key, const StoredEntry& entry) override {
    const detail::ErrnoScope keeps_errno;
    RespReply reply;
    Status status = link_->Ask({"HDEL", NameOf(key), entry.content_hash}, ":", reply);
    // The size of a damaged entry may be anything: where a hundred parts are not there, none is.
    constexpr uint64_t kBatchCount = 100;
    for (uint64_t i = 0; status.ok() && i < ChunkCount(entry); i += kBatchCount) {
      std::vector<std::string> names;
      for (uint64_t n = i; n < std::min(i + kBatchCount, ChunkCount(entry)); ++n)
        names.push_back(ChunkName(key, entry, n));
      Words words{"DEL"};
      words.insert(words.end(), names.begin(), names.end());
      status = link_->Ask(words, ":", reply);
      if (reply.number == 0) break;
    }
    return status;
  }

  ClaimState Claim(std::string_view key, std::unique_ptr<CacheClaim>& claim) override {
    const detail::ErrnoScope keeps_errno;
    const std::string name = NameOf(key) + ":claim";
    const std::string token = NewToken();
    const std::string value = std::string(kCompilingPrefix) + token;
    RespReply reply;
    const Status status = link_->Ask(
        {"SET", name, value, "NX", "PX", std::to_string(link_->options().claim_lease.count())},
        "+_", reply);
    if (!status.ok()) return ClaimState::kUnavailable;
    if (reply.type == '_') {
      if (!link_->Ask({"GET", name}, "$_", reply).ok()) return ClaimState::kUnavailable;
      if (reply.text.starts_with(kFinishedPrefix)) return ClaimState::kFinished;
      // Ours after all: the command was sent again on a new connection.
      if (reply.text != value) return ClaimState::kHeld;
    }
    claim = std::make_unique<RedisClaim>(link_, name, token);
    return ClaimState::kGranted;
  }

 private:
  std::string NameOf(std::string_view key) const {
    return link_->options().key_prefix + std::string(key);
  }
  std::string ChunkName(std::string_view key, const StoredEntry& entry, uint64_t index) const {
    return NameOf(key)
        .append(":")
        .append(entry.content_hash)
        .append(":")
        .append(std::to_string(index));
  }
  static uint64_t ChunkCount(const StoredEntry& entry) {
    // A size that was not checked yet.
    constexpr uint64_t kMaxCount = 1 << 20;
    const uint64_t count = entry.artifact_size_bytes / kArtifactChunkBytes +
                           (entry.artifact_size_bytes % kArtifactChunkBytes != 0 ? 1 : 0);
    return std::min(count, kMaxCount);
  }

  // Whether another one stored the artifact; its parts then live on.
  Status HasChunks(std::string_view key, const StoredEntry& entry, bool& is_there) {
    is_there = true;
    for (uint64_t i = 0; i < ChunkCount(entry) && is_there; ++i) {
      const std::string name = ChunkName(key, entry, i);
      RespReply reply;
      Status status = link_->Ask({"EXISTS", name}, ":", reply);
      is_there = status.ok() && reply.number == 1;
      if (is_there) status = Expire(name);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status PutChunks(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) {
    std::string chunk;
    uint64_t index = 0;
    Status put_status;
    const auto put = [&] {
      const std::string name = ChunkName(key, entry, index++);
      RespReply reply;
      put_status = link_->Ask({"SET", name, chunk}, "+", reply);
      if (put_status.ok()) put_status = Expire(name);
      chunk.clear();
    };
    Status status = artifact([&](std::string_view piece) {
      while (!piece.empty() && put_status.ok()) {
        const size_t count = std::min<size_t>(piece.size(), kArtifactChunkBytes - chunk.size());
        chunk.append(piece.substr(0, count));
        piece.remove_prefix(count);
        if (chunk.size() == kArtifactChunkBytes) put();
      }
      return put_status.ok();
    });
    if (status.ok() && put_status.ok() && !chunk.empty()) put();
    return put_status.ok() ? status : put_status;
  }

  Status Expire(const std::string& name) {
    if (!link_->options().expire_after) return {};
    RespReply reply;
    return link_->Ask({"EXPIRE", name, std::to_string(link_->options().expire_after->count())}, ":",
                      reply);
  }

  std::shared_ptr<RedisLink> link_;
};

Status ReadHmacKey(const RedisOptions& options, std::string& key) {
  if (!options.hmac_key_file.empty()) {
    if (Status status = detail::ReadFile(options.hmac_key_file, key); !status.ok()) return status;
  } else if (!options.hmac_key_variable.empty()) {
    const char* value = getenv(options.hmac_key_variable.c_str());
    if (value == nullptr) return Status::Error(options.hmac_key_variable + " is not set");
    key = value;
  } else if (options.allow_unauthenticated) {
    return {};
  } else {
    return Status::Error(
        "a Redis store needs hmac_key_file or hmac_key_variable (or allow_unauthenticated)");
  }
  if (!key.empty() && key.back() == '\n') key.pop_back();
  if (!key.empty() && key.back() == '\r') key.pop_back();
  return key.size() >= 16 ? Status() : Status::Error("the HMAC key has fewer than 16 bytes");
}

}  // namespace

Status MakeRedisStore(RedisOptions options, std::shared_ptr<CacheStore>& store) {
  const detail::ErrnoScope keeps_errno;
  std::string hmac_key;
  if (Status status = ReadHmacKey(options, hmac_key); !status.ok()) return status;
  if (options.tls && !options.unix_socket.empty())
    return Status::Error("a Redis store uses TLS or a unix socket, not both");
  if (options.timeout.count() <= 0 || options.claim_lease.count() <= 0)
    return Status::Error("a Redis store needs a timeout and a lease above 0");
  store = std::make_shared<RedisStore>(std::move(options));
  if (!hmac_key.empty()) store = MakeAuthenticatedStore(std::move(store), std::move(hmac_key));
  return {};
}

}  // namespace libtrace

#else

namespace libtrace {
Status MakeRedisStore(RedisOptions, std::shared_ptr<CacheStore>& store) {
  store.reset();
  return Status::Error("this libtrace was built without Redis (TRACEKIT_WITH_REDIS=OFF)");
}
}  // namespace libtrace

#endif
