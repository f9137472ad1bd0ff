// Parses JSON of logs with simdjson's DOM: accepts NaN, lone surrogates, duplicate members and
// integers of any size.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

namespace tlparse {

// Not thread-safe.
class LenientParser {
 public:
  // False if `json` is still not JSON. Otherwise root() and strict_text() live until the next
  // call (strict_text() may be `json` itself). Numbers that do not fit 64 bits are strings in
  // the DOM; it has [] and {} for large lists and objects of a text of more than kMostJsonValues
  // values.
  bool Parse(std::string_view json);
  simdjson::dom::element root() const { return root_; }
  bool is_whole() const { return is_whole_; }  // root(): no list or object is left out
  // `json` as strict JSON.
  std::string_view strict_text() const { return strict_text_; }

 private:
  bool ParseStrict(std::string_view json);

  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::string_view strict_text_;
  bool is_whole_ = true;
  std::string repaired_;
};

}  // namespace tlparse
