// ClickHouse's format RowBinary: rows of values without names or separators.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/hash128.h"

namespace tlparse {

// A 128-bit number as ClickHouse's UUID: the high half first, as the text shows it.
struct Uuid {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Uuid&) const = default;
};
// 8-4-4-4-12 lower-case hexadecimal digits, and back. Nothing if it is not such a text.
std::string ToText(const Uuid& uuid);
std::optional<Uuid> ParseUuid(std::string_view text);

// Appends values to a buffer of the caller. Integers are little endian, as on the machines
// supported.
class RowBinaryWriter {
 public:
  explicit RowBinaryWriter(std::string& out) : out_(out) {}

  void UInt8(std::uint8_t value) { out_ += static_cast<char>(value); }
  void UInt16(std::uint16_t value) { Raw(value); }
  void Int32(std::int32_t value) { Raw(value); }
  void UInt64(std::uint64_t value) { Raw(value); }
  void Int64(std::int64_t value) { Raw(value); }
  void Real(double value) { Raw(value); }
  void Length(std::uint64_t value) {
    for (; value >= 128; value >>= 7) UInt8(static_cast<std::uint8_t>(value | 128));
    UInt8(static_cast<std::uint8_t>(value));
  }
  void Text(std::string_view text) {
    Length(text.size());
    out_.append(text);
  }
  // Before the value of a Nullable column; after a NULL no value follows.
  void NullFlag(bool is_null) { UInt8(is_null ? 1 : 0); }
  // FixedString(16), in the order of the digits.
  void Hash(const Hash128& hash);
  void WriteUuid(const Uuid& uuid) {
    UInt64(uuid.high);
    UInt64(uuid.low);
  }

 private:
  template <typename T>
  void Raw(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }
  std::string& out_;
};

// Reads values from bytes that are not owned. Values past the end are zero or empty, and `is_short`
// is then true: the row is to be read again when more bytes have arrived.
class RowBinaryReader {
 public:
  explicit RowBinaryReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  bool is_short() const { return is_short_; }
  // An invalid length: over a GiB, or not a number.
  bool is_damaged() const { return is_damaged_; }
  std::size_t left() const { return bytes_.size(); }

  std::uint8_t UInt8() { return Raw<std::uint8_t>(); }
  std::uint16_t UInt16() { return Raw<std::uint16_t>(); }
  std::int32_t Int32() { return Raw<std::int32_t>(); }
  std::uint64_t UInt64() { return Raw<std::uint64_t>(); }
  std::int64_t Int64() { return Raw<std::int64_t>(); }
  double Real() { return Raw<double>(); }
  std::uint64_t Length();
  std::string_view Text();
  Hash128 Hash();
  Uuid ReadUuid() {
    Uuid uuid;
    uuid.high = UInt64();
    uuid.low = UInt64();
    return uuid;
  }

 private:
  template <typename T>
  T Raw() {
    T value{};
    if (bytes_.size() < sizeof value) {
      is_short_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view bytes_;
  bool is_short_ = false;
  bool is_damaged_ = false;
};

}  // namespace tlparse
