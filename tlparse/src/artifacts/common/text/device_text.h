// The index of a device in the text of a cache key's component: "cuda:3", "device(type='cuda',
// index=3)". Every rank of a GPU job has its own, so such texts are stored once, with a placeholder
// where the index was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

// U+FFFC (object replacement character), char(65532) in SQL.
inline constexpr std::string_view kDevicePlaceholder = "\xEF\xBF\xBC";

// Where the next number of a device begins, at `from` or after it: that of "cuda:3" (or another
// type) or of "device(type='cuda', index=3)". npos if there is none.
std::size_t FindDeviceIndex(std::string_view text, std::size_t from);

struct DeviceText {
  std::string text;  // with the placeholder for the index
  std::int64_t device_index;
};
// Nothing if `value` names no device, or several, or could not be restored from what would be
// stored. `name` is the component's: default_cuda_device_index is nothing but the index.
std::optional<DeviceText> TakeDeviceIndex(std::string_view name, std::string_view value);
// The inverse.
std::string PutDeviceIndex(std::string_view text, std::int64_t device_index);

}  // namespace tlparse
