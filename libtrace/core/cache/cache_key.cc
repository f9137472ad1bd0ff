#include "libtrace/cache/cache_key.h"

#include <cstdint>

#include "core/digest.h"
#include "core/errno_scope.h"

namespace libtrace {
namespace {

// `name` or `name[index]`; what is in brackets is free but for brackets and line ends.
std::string CleanName(std::string_view name) {
  std::string clean(name);
  const size_t bracket = clean.find('[');
  const bool has_index = bracket != std::string::npos && bracket > 0 && clean.back() == ']';
  const size_t end = has_index ? bracket : clean.size();
  for (size_t i = 0; i < end; ++i) {
    const auto c = static_cast<unsigned char>(clean[i]);
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && (c < '0' || c > '9')) clean[i] = '_';
  }
  for (size_t i = end + 1; has_index && i + 1 < clean.size(); ++i) {
    if (clean[i] == '[' || clean[i] == ']' || clean[i] == '\n') clean[i] = '_';
  }
  if (clean.empty()) clean += '_';
  return clean;
}

void AppendSized(std::string_view bytes, std::string& out) {
  const uint64_t size = bytes.size();
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(size >> shift & 0xFF);
  out.append(bytes);
}

}  // namespace

CacheKeyBuilder& CacheKeyBuilder::Add(std::string_view name, std::string_view text) {
  return AddContent(name, text, text);
}

CacheKeyBuilder& CacheKeyBuilder::AddContent(std::string_view name, std::string_view text,
                                             std::string_view content) {
  const detail::ErrnoScope keeps_errno;
  const std::string clean = CleanName(name);
  const detail::Sha256 digest = detail::Sha256Of(content);
  AppendSized(clean, hashed_);
  AppendSized({reinterpret_cast<const char*>(digest.data()), digest.size()}, hashed_);
  std::string line = "[";
  line.append(detail::Base32Key(digest)).append("] ").append(clean).append(": ").append(text);
  components_.push_back(std::move(line));
  return *this;
}

CacheKey CacheKeyBuilder::Build() const {
  const detail::ErrnoScope keeps_errno;
  return {prefix_ + detail::Base32Key(detail::Sha256Of(hashed_)), components_};
}

}  // namespace libtrace
