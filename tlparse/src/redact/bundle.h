// A zip file of bounded size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tlparse {

struct BundleEntry {
  std::string name;  // in the zip file
  std::string path;  // of the file; empty: `text` is what it holds
  std::string text;
};

struct BundledEntry {
  std::string name;
  std::int64_t size_bytes = 0;
  std::int64_t packed_bytes = 0;  // in the zip file
  bool is_left_out = false;       // the zip file would have become too large
};

// Writes the entries in their order to `path`, each that still fits into `most_bytes`, and `manifest(entries)` as the last one, MANIFEST.md. kRefused: `path` exists.
Result<std::vector<BundledEntry>> WriteBundle(
    const std::vector<BundleEntry>& entries, const std::string& path, std::int64_t most_bytes,
    std::string (*manifest)(const std::vector<BundledEntry>&));

}  // namespace tlparse
