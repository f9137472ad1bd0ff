#include "log/payload_text.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/plain_bytes.h"

namespace tlparse {

namespace {

// Copies from `from` to `to` up to and including the first LF, or up to `end`; returns the number
// of bytes. Most payload lines are shorter than 32 bytes (events are printed a token a line), where
// calls of memchr and memcpy cost more than the copy itself.
std::size_t CopyLine(const char* from, const char* end, char* to) {
  for (const char* at = from; at < end; at += kBlockBytes, to += kBlockBytes) {
    const unsigned line_feeds = SpecialBytes<0, '\n'>(at);
    std::memmove(to, at, kBlockBytes);  // `to` may be a few bytes before `at`
    if (line_feeds != 0)
      return static_cast<std::size_t>(std::min(at + std::countr_zero(line_feeds) + 1, end) - from);
  }
  return static_cast<std::size_t>(end - from);
}

}  // namespace

std::size_t RemoveTabs(std::string_view raw, bool remove_cr, char* to) {
  char* out = to;
  const char* at = raw.data();
  const char* const end = raw.data() + raw.size();
  while (at < end) {
    if (*at == '\t') ++at;  // always so but for hostile input
    std::size_t length = CopyLine(at, end, out);
    at += length;
    if (remove_cr && length > 0) {
      const bool has_newline = out[length - 1] == '\n';
      const std::size_t text = length - (has_newline ? 1 : 0);
      if (text > 0 && out[text - 1] == '\r') {
        out[text - 1] = '\n';
        length = text - (has_newline ? 0 : 1);
      }
    }
    out += length;
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

TornPayload::TornPayload(std::string_view lines, const Md5Digest& claimed) : claimed_(claimed) {
  if (!lines.empty()) Add(lines);
}

bool TornPayload::Add(std::string_view lines) {
  if (is_complete_) return false;
  std::string content(lines.size() + kRemoveTabsSlack, '\0');
  content.resize(RemoveTabs(lines, false, content.data()));
  if (!pieces_.empty()) md5_.Add("\n");
  md5_.Add(content);
  pieces_.push_back(lines);
  is_complete_ = md5_.Digest() == claimed_;
  return true;
}

std::string_view TornPayload::Join(Arena& arena) const {
  std::size_t size = pieces_.empty() ? 0 : pieces_.size() - 1;
  for (std::string_view piece : pieces_) size += piece.size();
  char* const joined = arena.Allocate(size);
  char* to = joined;
  for (std::string_view piece : pieces_) {
    if (to != joined) *to++ = '\n';
    to = std::copy(piece.begin(), piece.end(), to);
  }
  return {joined, size};
}

}  // namespace tlparse
