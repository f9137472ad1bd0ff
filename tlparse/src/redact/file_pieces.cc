#include "redact/file_pieces.h"

#include <ostream>
#include <string>
#include <string_view>

#include "redact/characters.h"

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

// Calls `take` with pieces of the file, each of which but the last ends where `end_in` says: behind how many bytes of what was read next, 0: not there.
template <typename EndIn, typename Take>
Result<void> ForEachPiece(memory::StreamSource& file, EndIn end_in, Take take) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  while (!file.IsAtEnd()) {
    const std::string_view more = *file.Take(file.Ahead(kPiece).size());
    const std::size_t end = end_in(more);
    if (end > 0) {
      text += more.substr(0, end);
      take(std::string_view(text));
      text.clear();
    }
    text += more.substr(end);
  }
  if (file.error()) return tl::unexpected<Error>(*file.error());
  take(std::string_view(text));
  return {};
}

template <typename Take>
Result<void> ForEachPieceOfJson(memory::StreamSource& json, Take take) {
  const auto behind_last_object = [strings = Strings()](std::string_view more) mutable {
    std::size_t end = 0;
    for (std::size_t at = 0; at < more.size(); ++at)
      if (strings.EndsObject(more[at])) end = at + 1;
    return end;
  };
  return ForEachPiece(json, behind_last_object, take);
}

// A line that is indented belongs to the one before: the code of a frame.
std::size_t BehindLastLine(std::string_view more) {
  constexpr std::size_t kSpaces = 2;    // one alone is behind "[rank0]:"
  constexpr std::size_t kEnough = 100;  // of a line, to see whether it is indented
  for (std::size_t end = more.rfind('\n'); end != std::string_view::npos && end > 0;
       end = more.rfind('\n', end - 1)) {
    const std::string_view next = more.substr(end + 1, kEnough);
    const bool is_enough = next.size() == kEnough || next.find('\n') != std::string_view::npos;
    if (is_enough && !IsIndented(next, kSpaces)) return end + 1;
  }
  return 0;
}

}  // namespace

Result<void> HarvestJson(memory::StreamSource& json, TextRedactor& redactor) {
  return ForEachPieceOfJson(json, [&](std::string_view piece) { redactor.Harvest(piece, {}); });
}

Result<void> RedactJsonFile(memory::StreamSource& json, TextRedactor& redactor, std::ostream& out) {
  return ForEachPieceOfJson(json,
                            [&](std::string_view piece) { out << redactor.RedactJson(piece); });
}

Result<void> HarvestText(memory::StreamSource& text, TextRedactor& redactor) {
  return ForEachPiece(text, BehindLastLine,
                      [&](std::string_view piece) { redactor.Harvest(piece, {}); });
}

Result<void> RedactTextFile(memory::StreamSource& text, TextRedactor& redactor, std::ostream& out) {
  return ForEachPiece(text, BehindLastLine,
                      [&](std::string_view piece) { out << redactor.Redact(piece); });
}

}  // namespace tlparse::redact
