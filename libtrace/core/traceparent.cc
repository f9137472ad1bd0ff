#include "libtrace/traceparent.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "core/errno_scope.h"

namespace libtrace {
namespace {

thread_local TraceparentScope* t_traceparent = nullptr;

bool IsLowerHex(std::string_view digits) {
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool IsId(std::string_view digits) {
  return IsLowerHex(digits) && digits.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

bool IsTraceparent(std::string_view header) noexcept {
  constexpr size_t kSize = 55;
  if (header.size() < kSize || header[2] != '-' || header[35] != '-' || header[52] != '-')
    return false;
  const std::string_view version = header.substr(0, 2);
  if (!IsLowerHex(version) || version == "ff") return false;
  // A later version may have more members.
  if (header.size() > kSize && (version == "00" || header[kSize] != '-')) return false;
  return IsId(header.substr(3, 32)) && IsId(header.substr(36, 16)) &&
         IsLowerHex(header.substr(53, 2));
}

bool IsSampled(std::string_view traceparent) noexcept {
  if (!IsTraceparent(traceparent)) return false;
  const char last = traceparent[54];  // a hexadecimal digit in lower case
  return (last <= '9' ? last - '0' : last - 'a' + 10) % 2 == 1;
}

std::string NewTraceparent() {
  const detail::ErrnoScope keeps_errno;
  unsigned char bytes[24];
  if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bytes)) {
    uint64_t seed = static_cast<uint64_t>(detail::NowNs());  // early in boot
    for (unsigned char& byte : bytes) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<unsigned char>(seed >> 56);
    }
  }
  bytes[0] |= 1;  // not zero
  bytes[16] |= 1;
  std::string text = "00-";
  for (size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 16) text += '-';
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text += "-01";
}

TraceparentScope::TraceparentScope(std::string_view header) noexcept : outer_(t_traceparent) {
  is_set_ = IsTraceparent(header);
  if (is_set_) std::copy_n(header.begin(), kSize, text_);
  t_traceparent = this;
}
TraceparentScope::~TraceparentScope() {
  if (t_traceparent == this) t_traceparent = outer_;
}

std::string_view CurrentTraceparent() noexcept {
  const TraceparentScope* const scope = t_traceparent;
  if (scope == nullptr || !scope->is_set_) return {};
  return {scope->text_, TraceparentScope::kSize};
}

}  // namespace libtrace
