#include "artifacts/common/text/device_text.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 7> kDeviceTypes = {"cuda", "xpu", "hpu",          "mtia",
                                                          "npu",  "hip", "privateuseone"};
constexpr std::size_t kMostDigits = 5;

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

bool EndsWithType(std::string_view text) {
  return std::any_of(kDeviceTypes.begin(), kDeviceTypes.end(), [text](std::string_view type) {
    return text.ends_with(type) &&
           (text.size() == type.size() || !IsWordCharacter(text[text.size() - type.size() - 1]));
  });
}

}  // namespace

std::size_t FindDeviceIndex(std::string_view text, std::size_t from) {
  for (std::size_t at = std::max<std::size_t>(from, 1); at < text.size(); ++at) {
    const char before = text[at - 1];
    if ((before != ':' && before != '=') || !IsDigit(text[at])) continue;
    if (before == ':' ? EndsWithType(text.substr(0, at - 1))
                      : text.substr(0, at).ends_with("', index=") &&
                            !text.substr(0, at).ends_with("'cpu', index="))
      return at;
  }
  return std::string_view::npos;
}

std::optional<DeviceText> TakeDeviceIndex(std::string_view name, std::string_view value) {
  if (name == "default_cuda_device_index") {
    const std::optional<std::int64_t> number = PlainNumber(value);
    return number ? std::optional(DeviceText{std::string(kDevicePlaceholder), *number})
                  : std::nullopt;
  }
  std::optional<DeviceText> result;
  std::size_t copied = 0;
  for (std::size_t begin = FindDeviceIndex(value, 0); begin != std::string_view::npos;
       begin = FindDeviceIndex(value, copied)) {
    std::size_t end = begin;
    while (end < value.size() && IsDigit(value[end])) ++end;
    const std::optional<std::int64_t> number = PlainNumber(value.substr(begin, end - begin));
    if (!number || (result && result->device_index != *number)) return std::nullopt;
    if (!result) result = DeviceText{{}, *number};
    result->text += value.substr(copied, begin - copied);
    result->text += kDevicePlaceholder;
    copied = end;
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
