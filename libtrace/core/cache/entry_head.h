// A cache entry without its artifact, and its encoding in stores.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/digest.h"
#include "libtrace/cache/cache_store.h"
#include "libtrace/cache/compile_cache.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

struct EntryHead {
  CacheEntry entry;  // without its artifact
  uint64_t artifact_size_bytes = 0;
  Sha256 artifact_digest{};
};

// The head of an entry whose artifact has this size and digest.
StoredEntry EncodeHead(const CacheEntry& entry, uint64_t artifact_size_bytes,
                       const Sha256& artifact_digest);
// Whether another version of the library stored it: it is of no use here, and not damaged.
bool IsOfAnotherVersion(const StoredEntry& stored);
// Not ok: damaged, of another version, or not what `stored` calls it.
Status DecodeHead(const StoredEntry& stored, EntryHead& head);

// The same for a complete entry. Not ok: its file cannot be read.
Status EncodeHeadOf(const CacheEntry& entry, StoredEntry& stored);

// The artifact of an entry in pieces, from memory or its file.
Status ReadArtifact(const CacheEntry& entry, ChunkSink sink);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
