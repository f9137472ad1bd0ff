#include "artifacts/common/device_text.h"

#include <array>
#include <cctype>

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 7> kDeviceTypes = {"cuda", "xpu", "hpu",          "mtia",
                                                          "npu",  "hip", "privateuseone"};
constexpr std::size_t kMostDigits = 5;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The number that `digits` is, if writing it gives the same digits.
std::optional<std::int64_t> PlainNumber(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  std::int64_t number = 0;
  for (const char c : digits) {
    if (!IsDigit(c)) return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

}  // namespace

std::size_t DevicePrefix(std::string_view text, std::size_t at) {
  if (at > 0 && IsWord(text[at - 1])) return 0;
  const std::string_view rest = text.substr(at);
  for (const std::string_view type : kDeviceTypes) {
    if (rest.starts_with(type) && rest.size() > type.size() && rest[type.size()] == ':')
      return type.size() + 1;
  }
  constexpr std::string_view kIndex = "index=";
  // Only inside device(type='cuda', index=3).
  if (rest.starts_with(kIndex) && text.substr(0, at).ends_with("', ")) return kIndex.size();
  return 0;
}

std::optional<DeviceText> TakeDeviceIndex(std::string_view name, std::string_view value) {
  if (name == "default_cuda_device_index") {
    const std::optional<std::int64_t> number = PlainNumber(value);
    return number ? std::optional(DeviceText{std::string(kDevicePlaceholder), *number})
                  : std::nullopt;
  }
  std::optional<DeviceText> result;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const char c = value[at];
    if (c < 'c' || c > 'x') continue;  // first letters of what is looked for
    const std::size_t prefix = DevicePrefix(value, at);
    if (prefix == 0) continue;
    const std::size_t begin = at + prefix;
    std::size_t end = begin;
    while (end < value.size() && IsDigit(value[end])) ++end;
    if (end == begin) continue;
    const std::optional<std::int64_t> number = PlainNumber(value.substr(begin, end - begin));
    if (!number || (result && result->device_index != *number)) return std::nullopt;
    if (!result) result = DeviceText{{}, *number};
    result->text += value.substr(copied, begin - copied);
    result->text += kDevicePlaceholder;
    copied = end;
    at = end - 1;
  }
  if (!result || value.find(kDevicePlaceholder) != std::string_view::npos) return std::nullopt;
  result->text += value.substr(copied);
  return result;
}

std::string PutDeviceIndex(std::string_view text, std::int64_t device_index) {
  const std::string number = std::to_string(device_index);
  std::string result;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(kDevicePlaceholder, at);
    result += text.substr(at, next - at);
    if (next == std::string_view::npos) return result;
    result += number;
    at = next + kDevicePlaceholder.size();
  }
}

}  // namespace tlparse
