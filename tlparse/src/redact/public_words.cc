#include "redact/public_words.h"

#include <zstd.h>

#include <algorithm>
#include <string>
#include <unordered_set>

namespace tlparse {
namespace {

#include "public_words.inc"

struct PublicSets {
  std::string plain;
  std::unordered_set<std::string_view> words, names;
  PublicSets() : plain(kPublicBytes, '\0') {
    // Nothing is public if it cannot be unpacked.
    if (ZSTD_decompress(plain.data(), plain.size(), kPublicPacked, sizeof kPublicPacked) !=
        kPublicBytes)
      return;
    std::string_view text = plain;
    std::unordered_set<std::string_view>* set = &words;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (line.empty())
        set = &names;
      else
        set->insert(line);
    }
  }
};

const PublicSets& Sets() {
  static const PublicSets sets;
  return sets;
}

}  // namespace

bool IsPublicWord(std::string_view word) { return word.size() < 2 || Sets().words.contains(word); }
bool IsPublicName(std::string_view name) { return Sets().names.contains(name); }

}  // namespace tlparse
