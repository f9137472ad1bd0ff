// The bytes of a bundle: `libtrace cache bundle 2`, a line with the hex SHA-256 of what follows, the
// size of the index, the index, and the distinct artifacts one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/cache/cache_store.h"
#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

struct BundleEntry {
  std::string layer;
  std::string key;
  StoredEntry stored;
  uint64_t artifact_offset = 0;  // from the first artifact
};

// Everything before the artifacts but the first two lines.
std::string EncodeBundleIndex(const std::vector<BundleEntry>& entries);
std::string BundleTitle(std::string_view hex_digest);

// Gives `size_bytes` bytes from `offset` on, or fewer at the end.
using BundleBytes = FunctionRef<Status(uint64_t offset, uint64_t size_bytes, ChunkSink sink)>;

// Checks the whole bundle. `artifacts_offset` is where the artifacts begin.
Status ReadBundleIndex(BundleBytes bytes, std::vector<BundleEntry>& entries,
                       uint64_t& artifacts_offset, uint64_t& size_bytes);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
