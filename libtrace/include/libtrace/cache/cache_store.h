// Where cache entries are kept. A key can hold several entries (their guards differ); an entry is
// bytes named by their SHA-256. All stores are thread-safe, and safe between processes that share
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

struct StoredEntry {
  std::string content_hash{};  // 51 base32 characters
  std::string bytes{};
};

class CacheStore {
 public:
  virtual ~CacheStore() = default;
  // Newest first; none if the key is unknown. Damaged entries are removed and left out.
  virtual Status Get(std::string_view key, std::vector<StoredEntry>& entries) = 0;
  // All or nothing: a reader sees the whole entry or none. Storing an entry again refreshes it.
  virtual Status Put(std::string_view key, const StoredEntry& entry) = 0;
  virtual Status Remove(std::string_view key) = 0;
  // Marks an entry as just used, for eviction. Failure is of no consequence.
  virtual void Touch(std::string_view, std::string_view) {}
};

struct LocalStoreStats {
  uint64_t size_bytes = 0;  // as last measured
  uint64_t evicted_count = 0;
  uint64_t damaged_count = 0;
};

// Files `<directory>/<2 characters>/<key>/<content hash>`, written beside and renamed. When the sum
// of all files exceeds `max_size_bytes` the least recently used entries go until 90 % of it is
// left; an entry larger than that is refused. 0 = unlimited.
class LocalStore : public CacheStore {
 public:
  LocalStore(std::string directory, uint64_t max_size_bytes);
  ~LocalStore() override;

  Status Get(std::string_view key, std::vector<StoredEntry>& entries) override;
  Status Put(std::string_view key, const StoredEntry& entry) override;
  Status Remove(std::string_view key) override;
  void Touch(std::string_view key, std::string_view content_hash) override;
  LocalStoreStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct RedisOptions {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string unix_socket{};  // instead of host and port
  std::string password{};
  std::string key_prefix = "libtrace:";
  std::chrono::milliseconds timeout{500};  // to connect, and for each command
  std::chrono::milliseconds retry_after{
      30'000};  // after a failure the server is left alone so long
  std::optional<std::chrono::seconds> expire_after{};  // of a key, from its last Put
};

// One Redis hash per key: field = content hash, value = bytes. Connects at first use. Null if
// libtrace was built without hiredis.
std::unique_ptr<CacheStore> MakeRedisStore(RedisOptions options);

}  // namespace LIBTRACE_EXPORT
