// Values of rows. The structs of the tables (rows/<script>.h, generated from schemas/sql) are made
// of these types, one member per column in the order of CREATE TABLE:
//
//   INTEGER, REAL   std::int64_t, double; an enum where the column references a lookup table
//   TEXT            RowText
//   ANY             StaticAny
//
// A column that may be NULL is a std::optional that is NULL unless it is set. A NOT NULL column has
// no default: leaving it out of `CacheEventRow{.record_id = …}` does not compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace tlparse {

// A value of a row as SQLite takes it. Text and blobs are not owned.
struct Cell {
  enum class Type : std::uint8_t { kNull, kInt, kReal, kText, kBlob };
  union {
    std::int64_t integer;
    double real;
    const char* bytes;
  };
  std::uint32_t size;
  Type type;
};

// Text that lives at least as long as the batch and is not copied: bytes of the window or arena, or
// a literal.
struct StaticText {
  std::string_view text;
};
// TEXT if valid UTF-8 without NUL, else BLOB; not copied.
struct StaticAny {
  std::string_view bytes;
  bool is_text;
};

// Text of a row: what RowBatch::Add copies, or a StaticText, which it does not. Views only: what it
// was made from must live until Add returns.
class RowText {
 public:
  template <typename T>
  requires std::convertible_to<const T&, std::string_view> RowText(const T& text)
      : bytes_(text), is_static_(false) {}
  RowText(StaticText text) : bytes_(text.text), is_static_(true) {}
  std::string_view bytes() const { return bytes_; }
  bool is_static() const { return is_static_; }

 private:
  std::string_view bytes_;
  bool is_static_;
};

// A value that has to be given.
template <typename T>
class NotNull {
 public:
  NotNull(T value) : value_(value) {}
  // Sizes and counts are unsigned; INTEGER columns accept them.
  template <std::unsigned_integral U>
  requires std::same_as<T, std::int64_t> NotNull(U value) : value_(static_cast<T>(value)) {}
  T value() const { return value_; }

 private:
  T value_;
};

}  // namespace tlparse
