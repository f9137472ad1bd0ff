// The members that readers of PyTorch's records require: a record without them would make them
// fail.
#pragma once

#include <string_view>

namespace libtrace::detail {

// Whether readers of PyTorch's logs know the key.
bool IsKnownKind(std::string_view key) noexcept;

// Null, or why a record `key` with the value `json` would be rejected. Keys that are not PyTorch's
// may have any value.
const char* RecordShapeComplaint(std::string_view key, std::string_view json) noexcept;

// Whether `text` is one JSON value as RFC 8259 has it, nested at most 64 deep.
bool IsStrictJson(std::string_view text) noexcept;

}  // namespace libtrace::detail
