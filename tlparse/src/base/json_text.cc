#include "base/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/json_walk.h"

namespace tlparse {
namespace {

// Calls `use(name, value)` for each member of an object, with the text between the name's quotes.
template <typename Use>
class MemberWalk : JsonWalker<MemberWalk<Use>> {
 public:
  MemberWalk(std::string_view object, Use use)
      : JsonWalker<MemberWalk>(object), use_(std::move(use)) {
    this->Walk();
  }

 private:
  friend class JsonWalker<MemberWalk>;
  using JsonWalker<MemberWalk>::at_;
  using JsonWalker<MemberWalk>::depth;

  bool Open() {
    if (depth() == 0 && *at_ != '{') return false;
    if (depth() == 1) value_ = at_;
    ++at_;
    return true;
  }
  bool Close() {
    ++at_;
    if (depth() == 1) use_(name_, this->TextSince(value_));
    return true;
  }
  bool Name() {
    const char* const begin = at_ + 1;
    if (!this->String()) return false;
    if (depth() != 1) return true;
    name_ = this->TextSince(begin);
    name_.remove_suffix(1);
    return true;
  }
  bool Scalar() {
    const char* const begin = at_;
    if (!this->StrictScalar()) return false;
    if (depth() == 1) use_(name_, this->TextSince(begin));
    return true;
  }
  void Comma() { ++at_; }
  void Colon() { ++at_; }

  Use use_;
  std::string_view name_;
  const char* value_ = nullptr;
};

// Calls `append(number, result)` for each number; everything else is copied.
template <typename AppendNumber>
class NumberRewrite : JsonWalker<NumberRewrite<AppendNumber>> {
 public:
  NumberRewrite(std::string_view json, AppendNumber append)
      : JsonWalker<NumberRewrite>(json), append_(std::move(append)), copied_(json.data()) {
    result_.reserve(json.size() + 16);
  }

  std::string Run() {
    this->Walk();
    at_ = end_;
    Copy();
    return std::move(result_);
  }

 private:
  friend class JsonWalker<NumberRewrite>;
  using JsonWalker<NumberRewrite>::at_;
  using JsonWalker<NumberRewrite>::end_;

  bool Scalar() {
    if (*at_ != '-' && !IsDigit(*at_)) return this->StrictScalar();
    Copy();
    if (!this->Number()) return false;
    append_(this->TextSince(copied_), result_);
    copied_ = at_;
    return true;
  }
  bool Name() { return this->String(); }
  bool Open() { return ++at_, true; }
  bool Close() { return ++at_, true; }
  void Comma() { ++at_; }
  void Colon() { ++at_; }

  void Copy() {
    result_.append(this->TextSince(copied_));
    copied_ = at_;
  }

  AppendNumber append_;
  const char* copied_;  // the text before it is in result_
  std::string result_;
};

// Lists and objects of a record of ordinary size.
constexpr std::size_t kMostKeptValueBytes = 16 << 10;

bool IsLarge(std::string_view value) {
  return value.size() > kMostKeptValueBytes && (value[0] == '[' || value[0] == '{');
}

// Whether simdjson keeps an integer of these digits: int64, or uint64 where it has no sign.
bool FitsInto64Bits(std::string_view digits, bool is_negative) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  return !is_negative || value <= std::uint64_t{1} << 63;
}

// Whether a number may not fit 64 bits: 19 digits, or an exponent of three.
bool IsOdd(std::string_view number) {
  constexpr std::size_t kMinDigits = 19;
  const std::size_t exponent = number.find_first_of("eE");
  if (exponent != std::string_view::npos) return number.size() - exponent > 3;
  return number.size() >= kMinDigits && number.find('.') == std::string_view::npos;
}

}  // namespace

std::string_view MemberText(std::string_view object, std::string_view key) {
  std::string_view found;
  MemberWalk(object, [&](std::string_view name, std::string_view value) {
    const bool is_plain = name.find('\\') == std::string_view::npos;
    if (is_plain ? name == key : UnescapeJson(name) == key) found = value;
  });
  return found;
}

std::string WithoutLargeValues(std::string_view object) {
  std::string result = "{";
  const auto append = [&](std::string_view name, std::string_view value) {
    if (result.back() != '{') result += ',';
    result.append("\"").append(name).append("\":").append(value);
  };
  MemberWalk(object, [&](std::string_view name, std::string_view value) {
    if (!IsLarge(value)) return append(name, value);
    if (value[0] == '[') return append(name, "[]");
    append(name, "{");
    MemberWalk(value, [&](std::string_view inner_name, std::string_view inner) {
      append(inner_name, !IsLarge(inner) ? inner : inner[0] == '[' ? "[]" : "{}");
    });
    result += '}';
  });
  return result += '}';
}

std::string WithoutBigIntegers(std::string_view json) {
  const auto append = [](std::string_view number, std::string& result) {
    const bool is_negative = number.starts_with('-');
    const bool is_integer = number.find_first_of(".eE") == std::string_view::npos;
    if (is_integer && FitsInto64Bits(number.substr(is_negative ? 1 : 0), is_negative)) {
      result += number;
    } else if (!std::isfinite(std::strtod(std::string(number).c_str(), nullptr))) {
      // Beyond double's range a number says no more than "huge".
      result += is_negative ? "-1e300" : "1e300";
    } else {
      result += number;
      if (is_integer) result += "e0";
    }
  };
  return NumberRewrite(json, append).Run();
}

std::string QuoteOddNumbers(std::string_view json) {
  const auto append = [](std::string_view number, std::string& result) {
    if (!IsOdd(number)) {
      result += number;
      return;
    }
    result.append("\"").append(number).append("\"");
  };
  return NumberRewrite(json, append).Run();
}

}  // namespace tlparse
