// Cache keys: SHA-256 over named components, so that the difference of two keys can be named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct CacheKey {
  // Prefix letters and 51 characters of [a-z2-7]: unpadded base32 of a SHA-256 (52 characters)
  // without the last one, as in PyTorch (torch/_inductor/codecache.py, sha256_hash).
  std::string text{};
  // One line per component, in the order of Add: `[51 characters] name: text`. Equal hash = equal
  // contribution to the key; compare hashes, never texts.
  std::vector<std::string> components{};
};

// Not thread-safe. Order of components matters: always add them in the same order.
class CacheKeyBuilder {
 public:
  // `prefix` names the kind of key, a letter or two.
  explicit CacheKeyBuilder(std::string_view prefix) : prefix_(prefix) {}

  // `name` is letters, digits and _ with an optional `[index]` or `[key]`; other characters become
  // _. `text` is what is hashed and what is shown.
  CacheKeyBuilder& Add(std::string_view name, std::string_view text);
  // Hashes `content` and shows `text`: for weights, graphs, anything large or secret.
  CacheKeyBuilder& AddContent(std::string_view name, std::string_view text,
                              std::string_view content);

  CacheKey Build() const;

 private:
  std::string prefix_;
  std::string hashed_;  // length-prefixed names and digests
  std::vector<std::string> components_;
};

}  // namespace LIBTRACE_EXPORT
