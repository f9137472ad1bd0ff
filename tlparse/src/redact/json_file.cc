#include "redact/json_file.h"

#include <ostream>
#include <string>
#include <string_view>

namespace tlparse::redact {
namespace {

// Where strings are, while a text is read from its beginning.
class Strings {
 public:
  // Whether `c`, the next character, ends an object.
  bool EndsObject(char c) {
    if (!is_inside_) {
      is_inside_ = c == '"';
      return c == '}';
    }
    if (is_escaped_)
      is_escaped_ = false;
    else if (c == '\\')
      is_escaped_ = true;
    else
      is_inside_ = c != '"';
    return false;
  }

 private:
  bool is_inside_ = false, is_escaped_ = false;
};

// Calls `take` with pieces, each of which ends where an object does, but for the last.
template <typename Take>
Result<void> ForEachPiece(memory::StreamSource& json, Take take) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  Strings strings;
  std::string text;
  while (!json.IsAtEnd()) {
    const std::string_view more = *json.Take(json.Ahead(kPiece).size());
    std::size_t end = 0;  // behind the last object that ends in `more`
    for (std::size_t at = 0; at < more.size(); ++at)
      if (strings.EndsObject(more[at])) end = at + 1;
    if (end > 0) {
      text += more.substr(0, end);
      take(std::string_view(text));
      text.clear();
    }
    text += more.substr(end);
  }
  if (json.error()) return tl::unexpected<Error>(*json.error());
  take(std::string_view(text));
  return {};
}

}  // namespace

Result<void> HarvestJson(memory::StreamSource& json, TextRedactor& redactor) {
  return ForEachPiece(json, [&](std::string_view piece) { redactor.Harvest(piece, {}); });
}

Result<void> RedactJsonFile(memory::StreamSource& json, TextRedactor& redactor, std::ostream& out) {
  return ForEachPiece(json, [&](std::string_view piece) { out << redactor.RedactJson(piece); });
}

}  // namespace tlparse::redact
