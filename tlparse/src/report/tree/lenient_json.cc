#include "report/tree/lenient_json.h"

#include "base/json_count.h"
#include "base/json_repair.h"
#include "base/json_text.h"

namespace tlparse {

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

}  // namespace tlparse
