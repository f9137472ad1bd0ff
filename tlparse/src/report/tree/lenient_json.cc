#include "report/tree/lenient_json.h"

#include "base/json_count.h"
#include "base/json_repair.h"
#include "log/envelope.h"

namespace tlparse {

namespace {

// Whether a number may not fit 64 bits: 19 digits, or an exponent of three.
bool IsOdd(std::string_view number) {
  constexpr std::size_t kMinDigits = 19;
  const std::size_t exponent = number.find_first_of("eE");
  if (exponent != std::string_view::npos) return number.size() - exponent > 3;
  return number.size() >= kMinDigits && number.find('.') == std::string_view::npos;
}

}  // namespace

bool LenientParser::ParseStrict(std::string_view json) {
  return parser_.parse(json.data(), json.size()).get(root_) == simdjson::SUCCESS;
}

bool LenientParser::Parse(std::string_view json) {
  strict_text_ = json;
  is_whole_ = !HasTooManyJsonValues(json);
  if (is_whole_ && ParseStrict(json)) return true;
  Result<RepairedJson> repaired = RepairJson(json);
  if (!repaired) return false;
  repaired_ = std::move(repaired->text);
  strict_text_ = repaired_;
  if (!is_whole_) {
    const std::string rest = WithoutLargeValues(repaired_);
    return !HasTooManyJsonValues(rest) && (ParseStrict(rest) || ParseStrict(QuoteOddNumbers(rest)));
  }
  return ParseStrict(repaired_) || ParseStrict(QuoteOddNumbers(repaired_));
}

std::string QuoteOddNumbers(std::string_view json) {
  constexpr std::string_view kNumber = "+-.0123456789eE";
  std::string quoted;
  quoted.reserve(json.size() + 16);
  for (std::size_t at = 0; at < json.size();) {
    std::size_t end = at + 1;
    if (json[at] == '"') {
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, json.size());
    } else if (json[at] == '-' || (json[at] >= '0' && json[at] <= '9')) {
      end = std::min(json.find_first_not_of(kNumber, at), json.size());
      const std::string_view number = json.substr(at, end - at);
      if (IsOdd(number)) {
        quoted += '"';
        quoted += number;
        quoted += '"';
        at = end;
        continue;
      }
    }
    quoted += json.substr(at, end - at);
    at = end;
  }
  return quoted;
}

}  // namespace tlparse
