// Where cache entries are kept. A key can hold several entries (their guards differ). An entry is a
// head (guard, properties, times) and an artifact, which is read only after the head was accepted.
// All stores are thread-safe, and safe between processes that share them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/cache/artifact_file.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

struct StoredEntry {
  // 51 base32 characters: of guard, properties and artifact. Measurements, such as the time of
  // compiling, are not part of it: equal contents are one entry.
  std::string content_hash{};
  std::string head{};  // at most kMaxHeadBytes
  uint64_t artifact_size_bytes = 0;
};

// Artifacts pass through memory in pieces of at most this size.
inline constexpr uint64_t kArtifactChunkBytes = uint64_t{8} << 20;
inline constexpr uint64_t kMaxHeadBytes = uint64_t{64} << 20;

// Takes the next piece of an artifact; false stops the transfer.
using ChunkSink = FunctionRef<bool(std::string_view chunk)>;
// Gives an artifact to the sink, from its beginning each time.
using ArtifactSource = FunctionRef<Status(ChunkSink sink)>;

// The right to compile a key. The destructor releases it; the store releases it if the process ends
// earlier.
class CacheClaim {
 public:
  virtual ~CacheClaim() = default;
  // The key was compiled, with any result: those who wait need not compile one after the other.
  virtual void Finish() noexcept = 0;
};

enum class ClaimState {
  kGranted,      // look again (another process may just have finished), then compile
  kHeld,         // another process compiles the key now
  kFinished,     // another process has just finished: look again, then compile without a claim
  kUnavailable,  // the store has no claims, or does not answer
};

class CacheStore {
 public:
  virtual ~CacheStore() = default;
  // Heads only, newest first; none if the key is unknown. Not ok: the store could not be asked, or
  // has entries that must not be used; `entries` then holds those that may be used.
  virtual Status List(std::string_view key, std::vector<StoredEntry>& entries) = 0;
  // Gives the artifact of a listed entry to `sink`. The caller checks its digest.
  virtual Status Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) = 0;
  // All or nothing: a reader sees the whole entry or none. Storing an entry again refreshes it.
  virtual Status Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) = 0;
  virtual Status Remove(std::string_view key) = 0;
  // For an entry whose bytes are damaged.
  virtual Status RemoveEntry(std::string_view key, const StoredEntry& entry) = 0;
  // Marks an entry as just used, for eviction. Failure is of no consequence.
  virtual void Touch(std::string_view, std::string_view) {}
  // Asks for the right to compile a key; never waits. The result is a hint: two processes may hold
  // the claim of one key if the store lost it.
  virtual ClaimState Claim(std::string_view, std::unique_ptr<CacheClaim>&) {
    return ClaimState::kUnavailable;
  }
};

struct LocalStoreStats {
  uint64_t size_bytes = 0;  // as last measured
  uint64_t evicted_count = 0;
  uint64_t damaged_count = 0;
};

// Files `<directory>/<2 characters>/<key>/<content hash>` (the artifact) and `<content hash>.head`,
// written to a temporary name and renamed, the head last. When all files exceed `max_size_bytes`
// the least recently used entries go until 90 % of it is left; an entry larger than that is
// refused. 0 = unlimited. A claim is a lock on `.claim` in the same folder: it ends with its
// process.
class LocalStore : public CacheStore {
 public:
  LocalStore(std::string directory, uint64_t max_size_bytes);
  ~LocalStore() override;

  Status List(std::string_view key, std::vector<StoredEntry>& entries) override;
  Status Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) override;
  Status Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) override;
  Status Remove(std::string_view key) override;
  Status RemoveEntry(std::string_view key, const StoredEntry& entry) override;
  void Touch(std::string_view key, std::string_view content_hash) override;
  ClaimState Claim(std::string_view key, std::unique_ptr<CacheClaim>& claim) override;
  // The artifact's file itself, not checked.
  Status Open(std::string_view key, const StoredEntry& entry,
              std::shared_ptr<const ArtifactFile>& file);
  LocalStoreStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct RedisOptions {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string unix_socket{};  // instead of host and port
  std::string username{};     // "" = the server's default user
  std::string password{};
  // TLS. The server's certificate and name are always checked.
  bool tls = false;
  std::string tls_ca_file{};                           // PEM; "" = the system's
  std::string tls_server_name{};                       // "" = host
  std::string tls_certificate_file{}, tls_key_file{};  // of the client, if the server wants them
  // The key with which entries are authenticated (HMAC-SHA-256): the content of a file or of an
  // environment variable, at least 16 bytes; one line end at its end is no part of it. Without a
  // key, any client that can write to the server can give every host code to run.
  std::string hmac_key_file{};
  std::string hmac_key_variable{};
  bool allow_unauthenticated = false;  // true: neither file nor variable is needed
  std::string key_prefix = "libtrace:";
  // To connect (asking for the address of a host is not included), and for the server to take or
  // send the next bytes.
  std::chrono::milliseconds timeout{500};
  // Circuit breaker: a broken connection is opened again once, at once. If that fails the server is
  // left alone, for 100 ms at first, twice as long after each further failure, and at most this
  // long. After that one command tries again; others fail at once until it has succeeded.
  std::chrono::milliseconds retry_after{30'000};
  std::optional<std::chrono::seconds> expire_after{};  // of an entry, from its last Put
  std::chrono::milliseconds claim_lease{10'000};  // after which a killed process has lost its claim
};

// One Redis hash per key: field = content hash, value = head; artifacts in keys of their own, in
// pieces. Plain commands only (GET, SET, EXISTS, EXPIRE, DEL, HGETALL, HSET, HDEL, AUTH). Connects
// at first use. Not ok: libtrace was built without Redis, or the options are wrong.
Status MakeRedisStore(RedisOptions options, std::shared_ptr<CacheStore>& store);

// Entries pass through with an HMAC-SHA-256 over key and head (and by it the artifact's digest). An
// entry without the right one is not used: List then leaves it out and is not ok.
std::shared_ptr<CacheStore> MakeAuthenticatedStore(std::shared_ptr<CacheStore> store,
                                                   std::string hmac_key);

}  // namespace LIBTRACE_EXPORT
