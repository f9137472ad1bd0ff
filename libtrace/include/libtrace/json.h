// JsonWriter: writes JSON the way the structured trace spells it.
//
// Output is pure ASCII: other characters become \uXXXX (surrogate pairs beyond U+FFFF), bytes that
// are not UTF-8 become \ufffd. It is always well formed: a value where a key belongs gets the key
// "", a key twice stays twice, what is left open is closed by Finish(). Not thread-safe; throws
// only std::bad_alloc.
//
//   std::string text;
//   JsonWriter json(text);
//   json.BeginObject().Field("name", "add").Field("shape", std::vector<int64_t>{4, 4}).EndObject();
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

enum class JsonStyle {
  kOneLine,  // {"a": [1, 2]}: separators of Python's json.dumps; envelopes and cache_info use it
  kLinePerToken,    // every member and element on a line of its own: json.dumps(indent=0), most
                    // payloads
  kLinePerElement,  // elements of the outermost list on a line each, compact inside: list payloads
};

// A value that is JSON text already: Value() writes it as Json() does.
struct RawJson {
  std::string text;
};

namespace detail {
// std::optional and what looks like it.
template <class T, class = void>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<T, std::void_t<decltype(std::declval<const T&>().has_value()),
                                 decltype(*std::declval<const T&>())>> : std::true_type {};
// A pair whose first is a string: an element of an object.
template <class T, class = void>
struct IsNamed : std::false_type {};
template <class T>
struct IsNamed<T, std::void_t<decltype(std::string_view(std::declval<const T&>().first)),
                              decltype(std::declval<const T&>().second)>> : std::true_type {};
}  // namespace detail

class JsonWriter {
 public:
  // Appends to `out`, which must outlive the writer and must not be touched meanwhile.
  explicit JsonWriter(std::string& out, JsonStyle style = JsonStyle::kOneLine)
      : out_(&out), style_(style), start_(out.size()) {}
  ~JsonWriter() = default;
  JsonWriter(const JsonWriter&) = delete;  // two writers would not know of each other's brackets
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view name);

  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& UInt(uint64_t value);
  // Shortest text that reads back as the same double, always with a fraction or an exponent. NaN
  // and infinities become null: other readers reject them.
  JsonWriter& Double(double value);
  // `digits` is a JSON number already; for integers beyond 64 bits.
  JsonWriter& Number(std::string_view digits);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // Writes `json` again in this writer's spelling. Text that is not JSON is written as a string.
  JsonWriter& Json(std::string_view json);
  // Writes the members of the JSON object `object` into the open object; other text as the member
  // `args`.
  JsonWriter& MembersOf(std::string_view object);

  // bool, numbers, strings, RawJson; optional (null if empty); ranges of these (arrays, and objects
  // if the elements are pairs with a string first).
  template <class T>
  JsonWriter& Value(const T& value) {
    using V = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<V, bool>) {
      return Bool(value);
    } else if constexpr (std::is_same_v<V, RawJson>) {
      return Json(value.text);
    } else if constexpr (std::is_same_v<V, std::nullptr_t> || std::is_same_v<V, std::nullopt_t>) {
      return Null();
    } else if constexpr (std::is_floating_point_v<V>) {
      return Double(static_cast<double>(value));
    } else if constexpr (std::is_integral_v<V> && std::is_unsigned_v<V>) {
      return UInt(value);
    } else if constexpr (std::is_integral_v<V>) {
      return Int(value);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      return String(value);
    } else if constexpr (detail::IsOptional<V>::value) {
      return value.has_value() ? Value(*value) : Null();
    } else {
      return Range(value);
    }
  }

  template <class T>
  JsonWriter& Field(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }
  // Writes the member only if there is a value, as optional members of the format are.
  template <class T>
  JsonWriter& OptionalField(std::string_view name, const std::optional<T>& value) {
    return value ? Key(name).Value(*value) : *this;
  }

  // Closes everything open. Called by the library after every builder.
  void Finish();
  bool wrote_anything() const { return out_->size() != start_; }

 protected:
  std::string& out() { return *out_; }
  void BeforeValue();

 private:
  static constexpr int kMaxDepth = 64;  // deeper containers are written as null

  template <class R>
  JsonWriter& Range(const R& range) {
    using E = std::decay_t<decltype(*std::begin(std::declval<const R&>()))>;
    if constexpr (detail::IsNamed<E>::value) {
      BeginObject();
      for (const auto& [name, value] : range) Field(name, value);
      return EndObject();
    } else {
      BeginArray();
      for (const auto& element : range) Value(static_cast<const E&>(element));
      return EndArray();
    }
  }

  void Open(char bracket, bool is_object);
  void Close(char bracket, bool is_object);
  std::string_view Separator();  // to be written before the next key or element
  bool BreaksLines() const;

  std::string* out_;
  JsonStyle style_;
  size_t start_;
  int depth_ = 0;
  int skipped_depth_ = 0;     // containers beyond kMaxDepth that are open
  uint64_t has_element_ = 0;  // one bit per open container
  uint64_t is_object_ = 0;    // one bit per open container
  bool after_key_ = false;
};

// Appends `text` as a JSON string with quotes.
void AppendJsonString(std::string_view text, std::string& out);

// Checks that `json` is one JSON value (RFC 8259, and NaN/Infinity, written as null) and appends it
// in the spelling of `style`. Returns false and appends nothing if it is not, or nests deeper
// than 64.
bool AppendNormalizedJson(std::string_view json, JsonStyle style, std::string& out);

}  // namespace LIBTRACE_EXPORT
