#include "libtrace/cache/cache_store.h"

#ifdef LIBTRACE_WITH_HIREDIS

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <mutex>

#include "core/clock.h"
#include "core/digest.h"
#include "core/signal_guard.h"

namespace libtrace {
namespace {

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

timeval ToTimeval(std::chrono::milliseconds time) {
  return {static_cast<time_t>(time.count() / 1000),
          static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

std::string_view TextOf(const redisReply* reply) { return {reply->str, reply->len}; }

class RedisStore : public CacheStore {
 public:
  explicit RedisStore(RedisOptions options) : options_(std::move(options)) {}

  Status Get(std::string_view key, std::vector<StoredEntry>& entries) override {
    entries.clear();
    const std::lock_guard lock(mutex_);
    const std::string name = options_.key_prefix + std::string(key);
    Reply reply;
    Status status = Command({"HGETALL", name}, REDIS_REPLY_ARRAY, reply);
    if (!status.ok()) return status;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
      StoredEntry entry{std::string(TextOf(reply->element[i])),
                        std::string(TextOf(reply->element[i + 1]))};
      // What anybody could have written there is not trusted.
      if (detail::Base32Key(detail::Sha256Of(entry.bytes)) != entry.content_hash) {
        Reply ignored;
        (void)Command({"HDEL", name, entry.content_hash}, REDIS_REPLY_INTEGER, ignored);
        continue;
      }
      entries.push_back(std::move(entry));
    }
    return {};
  }

  Status Put(std::string_view key, const StoredEntry& entry) override {
    const std::lock_guard lock(mutex_);
    const std::string name = options_.key_prefix + std::string(key);
    Reply reply;
    Status status =
        Command({"HSET", name, entry.content_hash, entry.bytes}, REDIS_REPLY_INTEGER, reply);
    if (!status.ok() || !options_.expire_after) return status;
    return Command({"EXPIRE", name, std::to_string(options_.expire_after->count())},
                   REDIS_REPLY_INTEGER, reply);
  }

  Status Remove(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    Reply reply;
    return Command({"DEL", options_.key_prefix + std::string(key)}, REDIS_REPLY_INTEGER, reply);
  }

 private:
  Status Command(const std::vector<std::string_view>& words, int expected_type, Reply& reply) {
    if (Status status = Connect(); !status.ok()) return status;
    return Send(words, expected_type, reply);
  }

  Status Connect() {
    const int pid = getpid();
    // A forked child must not talk on its parent's connection.
    if (context_ && pid_ != pid) context_.reset();
    if (context_) return {};
    const int64_t now_ns = detail::SteadyNs();
    if (now_ns < retry_at_ns_) return Status::Error(last_error_);
    const timeval timeout = ToTimeval(options_.timeout);
    context_.reset(options_.unix_socket.empty()
                       ? redisConnectWithTimeout(options_.host.c_str(), options_.port, timeout)
                       : redisConnectUnixWithTimeout(options_.unix_socket.c_str(), timeout));
    pid_ = pid;
    if (!context_) return Fail("no memory to connect to Redis");
    if (context_->err != 0)
      return Fail(std::string("cannot connect to Redis: ") + context_->errstr);
    redisSetTimeout(context_.get(), timeout);
    if (options_.password.empty()) return {};
    Reply reply;
    return Send({"AUTH", options_.password}, REDIS_REPLY_STATUS, reply);
  }

  Status Send(const std::vector<std::string_view>& words, int expected_type, Reply& reply) {
    std::vector<const char*> texts;
    std::vector<size_t> sizes;
    for (const std::string_view word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    const detail::SignalGuard guard(SIGPIPE);
    reply.reset(static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
    if (!reply) return Fail(std::string("Redis does not answer: ") + context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) {
      return Status::Error(std::string("Redis refuses: ").append(TextOf(reply.get())));
    }
    if (reply->type != expected_type) return Fail("Redis answers something unexpected");
    return {};
  }

  // Gives the connection up and leaves the server alone for a while.
  Status Fail(std::string message) {
    context_.reset();
    last_error_ = std::move(message);
    retry_at_ns_ =
        detail::SteadyNs() +
        std::chrono::duration_cast<std::chrono::nanoseconds>(options_.retry_after).count();
    return Status::Error(last_error_);
  }

  const RedisOptions options_;
  std::mutex mutex_;  // one command at a time; guards what follows
  std::unique_ptr<redisContext, FreeContext> context_;
  int pid_ = 0;
  int64_t retry_at_ns_ = 0;
  std::string last_error_;
};

}  // namespace

std::unique_ptr<CacheStore> MakeRedisStore(RedisOptions options) {
  return std::make_unique<RedisStore>(std::move(options));
}

}  // namespace libtrace

#else

namespace libtrace {
std::unique_ptr<CacheStore> MakeRedisStore(RedisOptions) { return nullptr; }
}  // namespace libtrace

#endif
