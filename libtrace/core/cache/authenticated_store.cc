#include <utility>

#include "core/digest.h"
#include "core/errno_scope.h"
#include "libtrace/cache/cache_store.h"

namespace libtrace {
namespace {

constexpr std::string_view kPurpose = "libtrace cache entry 2";

// Compares in a time that does not depend on where they differ.
bool AreEqual(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

class AuthenticatedStore : public CacheStore {
 public:
  AuthenticatedStore(std::shared_ptr<CacheStore> store, std::string hmac_key)
      : store_(std::move(store)), hmac_key_(std::move(hmac_key)) {}

  Status List(std::string_view key, std::vector<StoredEntry>& entries) override {
    const detail::ErrnoScope keeps_errno;
    std::vector<StoredEntry> listed;
    Status status = store_->List(key, listed);
    entries.clear();
    size_t refused_count = 0;
    for (StoredEntry& entry : listed) {
      if (Open(key, entry)) {
        entries.push_back(std::move(entry));
      } else {
        ++refused_count;
      }
    }
    if (status.ok() && refused_count > 0) {
      status = Status::Error(std::to_string(refused_count) +
                             " of the remote store's entries of this key have no valid signature");
    }
    return status;
  }
  Status Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) override {
    return store_->Load(key, entry, sink);
  }
  Status Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) override {
    const detail::ErrnoScope keeps_errno;
    return store_->Put(key, Seal(key, entry), artifact);
  }
  Status Remove(std::string_view key) override { return store_->Remove(key); }
  Status RemoveEntry(std::string_view key, const StoredEntry& entry) override {
    return store_->RemoveEntry(key, entry);
  }
  void Touch(std::string_view key, std::string_view content_hash) override {
    store_->Touch(key, content_hash);
  }
  ClaimState Claim(std::string_view key, std::unique_ptr<CacheClaim>& claim) override {
    return store_->Claim(key, claim);
  }

 private:
  // The head has the artifact's size and digest, and is named by the content hash.
  std::string SignatureOf(std::string_view key, std::string_view content_hash,
                          std::string_view head) const {
    std::string text(kPurpose);
    for (const std::string_view part : {key, content_hash, head})
      text.append("\n").append(std::to_string(part.size())).append(":").append(part);
    const detail::Sha256 digest = detail::HmacSha256(hmac_key_, text);
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
  }
  StoredEntry Seal(std::string_view key, const StoredEntry& entry) const {
    StoredEntry sealed = entry;
    sealed.head = SignatureOf(key, entry.content_hash, entry.head) + entry.head;
    return sealed;
  }
  bool Open(std::string_view key, StoredEntry& entry) const {
    constexpr size_t kSize = detail::Sha256{}.size();
    if (entry.head.size() < kSize) return false;
    const std::string signature = entry.head.substr(0, kSize);
    entry.head.erase(0, kSize);
    return AreEqual(signature, SignatureOf(key, entry.content_hash, entry.head));
  }

  std::shared_ptr<CacheStore> store_;
  std::string hmac_key_;
};

}  // namespace

std::shared_ptr<CacheStore> MakeAuthenticatedStore(std::shared_ptr<CacheStore> store,
                                                   std::string hmac_key) {
  const detail::ErrnoScope keeps_errno;
  return std::make_shared<AuthenticatedStore>(std::move(store), std::move(hmac_key));
}

}  // namespace libtrace
