#include "redact/public_words.h"

#include <algorithm>
#include <unordered_set>

namespace tlparse {
namespace {

#ifdef __clang__
#pragma clang diagnostic ignored "-Woverlength-strings"
#endif
constexpr char kPublicText[] =
#include "public_words.inc"
    ;

struct PublicSets {
  std::unordered_set<std::string_view> words, names;
  PublicSets() {
    std::string_view text(kPublicText, sizeof kPublicText - 1);
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
