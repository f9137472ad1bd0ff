#include "log/payload_text.h"

#include <cstring>

namespace tlparse {

std::size_t RemoveTabs(std::string_view raw, bool remove_cr, char* to) {
  char* out = to;
  const char* at = raw.data();
  const char* const end = raw.data() + raw.size();
  while (at < end) {
    if (*at == '\t') ++at;  // always so but for hostile input
    const char* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    const char* const stop = newline == nullptr ? end : newline;
    std::size_t length = static_cast<std::size_t>(stop - at);
    std::memcpy(out, at, length);
    if (remove_cr && length > 0 && at[length - 1] == '\r') --length;
    out += length;
    if (newline == nullptr) break;
    *out++ = '\n';
    at = newline + 1;
  }
  return static_cast<std::size_t>(out - to);
}

bool EveryLineEndsInCr(std::string_view raw) {
  if (raw.empty() || raw.back() != '\r') return false;
  for (std::size_t at = raw.find('\n'); at != std::string_view::npos; at = raw.find('\n', at + 1)) {
    if (at == 0 || raw[at - 1] != '\r') return false;
  }
  return true;
}

}  // namespace tlparse
