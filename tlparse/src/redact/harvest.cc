// The part of TextRedactor that finds the user's names: where PyTorch writes which function, line and attribute something comes from.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"
#include "redact/characters.h"
#include "redact/public_words.h"
#include "redact/text_redactor.h"

namespace tlparse {
namespace {

// Calls `take` with the position behind each occurrence of `mark`.
template <typename Take>
void ForEachMark(std::string_view text, std::string_view mark, Take take) {
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at))
    take(at += mark.size());
}

std::string_view UpTo(std::string_view text, std::size_t at, std::string_view ends) {
  return text.substr(at, std::min(text.find_first_of(ends, at), text.size()) - at);
}

std::size_t SkipSpaces(std::string_view text, std::size_t at) {
  return redact::RunEnd(text, at, [](char c) { return c == ' '; });
}

// The text of a JSON string that begins at `at`, with its escapes; empty: there is none.
std::string_view JsonText(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '"') return {};
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return end < text.size() ? text.substr(at + 1, end - at - 1) : std::string_view();
}

// Where a text last has `mark` before a position. Positions are asked for in ascending order, so the text is read once.
class LastBefore {
 public:
  LastBefore(std::string_view text, std::string_view mark) : text_(text), mark_(mark) {}
  // npos: nowhere.
  std::size_t At(std::size_t at) {
    const std::string_view between = text_.substr(read_, at - read_);
    if (const std::size_t found = between.rfind(mark_); found != std::string_view::npos)
      last_ = read_ + found;
    read_ = std::max(read_, at - std::min(at, mark_.size() - 1));  // it may lie across `at`
    return last_;
  }

 private:
  std::string_view text_, mark_;
  std::size_t read_ = 0, last_ = std::string_view::npos;
};

}  // namespace

void TextRedactor::AddName(std::string_view name) {
  const std::string lower = InLowerCase(redact::WithoutUnderscores(name));
  constexpr std::size_t kShortest = 3;  // nobody knows a program by its x
  if (lower.size() < kShortest || IsDigit(lower.front()) || IsPublicName(lower)) return;
  // Globals that PyTorch makes.
  if (lower.starts_with("import_torch") || lower.starts_with("builtins_dict")) return;
  if (user_names_.insert(lower).second) redacted_names_.clear();
}

void TextRedactor::AddNamesOfCode(std::string_view code) {
  for (std::size_t at = 0; at < code.size();) {
    if (code[at] == '\\') {
      at += 2;
      continue;
    }
    const std::size_t end = redact::RunEnd(code, at, IsNameCharacter);
    if (end > at) AddName(code.substr(at, end - at));
    at = std::max(end, at + 1);
  }
}

bool TextRedactor::HarvestFrame(std::string_view function, std::string_view path) {
  if (path.empty() || redact::IsPublicPath(path)) return false;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.ends_with(".py")) user_files_.emplace(file);
  AddName(function);
  return true;
}

// {"line": 12, "name": "forward", "filename": 3 or a path, "loc": "y = self.net(x)"}, and co_name with co_filename; the members in any order.
void TextRedactor::HarvestFrames(std::string_view text, const InternedPaths& interned) {
  constexpr std::size_t kNear = 300;
  for (const std::string_view mark : {"\"name\":", "\"co_name\":"}) {
    const std::string_view key = mark.starts_with("\"co_") ? "\"co_filename\":" : "\"filename\":";
    LastBefore last_key(text, key), last_end(text, "}");
    ForEachMark(text, mark, [&](std::size_t at) {
      const std::string_view name = JsonText(text, SkipSpaces(text, at));
      const std::string_view near = text.substr(at, name.size() + kNear);
      std::size_t file_at = at + std::min(near.find(key), near.size());
      if (file_at == at + near.size() || near.substr(0, file_at - at).find('}') != near.npos) {
        // In front, in the same object.
        file_at = last_key.At(at);
        if (file_at == text.npos) return;
        if (const std::size_t end = last_end.At(at); end != text.npos && end > file_at) return;
      }
      if (name.empty()) return;
      const std::size_t value = SkipSpaces(text, file_at + key.size());
      std::string_view path = JsonText(text, value);
      std::int64_t number = -1;
      std::from_chars(text.data() + value, text.data() + text.size(), number);
      if (const auto found = interned.find(number); path.empty() && found != interned.end())
        path = found->second;
      if (!HarvestFrame(name, path)) return;
      const std::size_t code_at = near.find("\"loc\":");
      if (code_at != std::string_view::npos &&
          near.substr(0, code_at).find('}') == std::string_view::npos)
        AddNamesOfCode(JsonText(text, SkipSpaces(text, at + code_at + 6)));
    });
  }
  ForEachMark(text, "Name: ", [&](std::size_t at) {
    const std::string_view name = UpTo(text, at, ",\n\"");
    const std::size_t file_at = at + name.size();
    constexpr std::string_view kFile = ", Filename: ";
    if (text.substr(file_at).starts_with(kFile))
      HarvestFrame(name, UpTo(text, file_at + kFile.size(), "\"\n\\,"));
  });
}

// File "a/train.py", line 12, in forward\n    y = self.net(x): a traceback; of faulthandler: "…, line 12 in forward"; in JSON with its escapes.
void TextRedactor::HarvestTracebacks(std::string_view text) {
  ForEachMark(text, "File ", [&](std::size_t at) {
    const std::size_t begin = at + (text.substr(at).starts_with('\\') ? 2 : 1);
    if (begin > text.size()) return;
    const std::string_view path = UpTo(text, begin, "\"\\\n");
    std::size_t name_at = begin + path.size();
    const std::string_view quote = text.substr(at, begin - at);
    constexpr std::string_view kLine = ", line ";
    if (!quote.ends_with('"') || !text.substr(name_at).starts_with(quote)) return;
    name_at += quote.size();
    if (!text.substr(name_at).starts_with(kLine)) return;
    name_at = redact::RunEnd(text, name_at + kLine.size(), IsDigit);
    if (text.substr(name_at).starts_with(',')) ++name_at;
    constexpr std::string_view kIn = " in ";
    if (!text.substr(name_at).starts_with(kIn)) return;
    name_at += kIn.size();
    const std::string_view name = UpTo(text, name_at, "\n\\");
    if (!HarvestFrame(name.substr(name.rfind('.') + 1), path)) return;
    AddNamesOfCode(name);  // of Python 3.11 and later, in faulthandler's too: Net.forward
    const std::string_view rest = text.substr(name_at + name.size());
    for (const std::string_view newline : {"\n", "\\n"})
      if (const std::string_view code = rest.substr(std::min(newline.size(), rest.size()));
          rest.starts_with(newline) && redact::IsIndented(code, 4))
        AddNamesOfCode(UpTo(code, redact::PrefixEnd(code), "\n\\"));
  });
}

// "a/train.py:12 in forward, code: y = self.net(x)", "train.py(12): forward".
void TextRedactor::HarvestPlaces(std::string_view text) {
  ForEachMark(text, ".py", [&](std::size_t at) {
    if (at >= text.size() || (text[at] != ':' && text[at] != '(')) return;
    std::size_t begin = at;
    while (begin > 0 && redact::IsPathCharacter(text[begin - 1])) --begin;
    const std::string_view path = text.substr(begin, at - begin);
    if (redact::IsPublicPath(path)) return;
    std::size_t name_at = redact::RunEnd(text, at + 1, IsDigit);
    const std::string_view between = text.substr(name_at, 4);
    if (name_at == at + 1 || (!between.starts_with(" in ") && !between.starts_with("): "))) return;
    user_files_.emplace(path.substr(path.rfind('/') + 1));
    name_at += between.starts_with(" in ") ? 4 : 3;
    const std::size_t name_end = redact::RunEnd(text, name_at, IsNameCharacter);
    AddName(text.substr(name_at, name_end - name_at));
    constexpr std::string_view kCode = ", code: ";
    if (text.substr(name_end).starts_with(kCode))
      AddNamesOfCode(UpTo(text, name_end + kCode.size(), "\n\""));
  });
}

// L['self']._modules['net'], L['self'].net, G['helper'], '__main__.Net'.
void TextRedactor::HarvestLookups(std::string_view text) {
  for (const std::string_view mark :
       {"L['", "G['", "_modules['", "_parameters['", "_buffers['", "__main__."})
    ForEachMark(text, mark, [&](std::size_t at) {
      const std::size_t end = redact::RunEnd(text, at, IsNameCharacter);
      AddName(text.substr(at, end - at));
    });
  ForEachMark(text, "L['self'].", [&](std::size_t at) {
    AddNamesOfCode(text.substr(
        at, redact::RunEnd(text, at, [](char c) { return IsNameCharacter(c) || c == '.'; }) - at));
  });
}

// <class 'model.Net'>, unless it is of a package that everybody has.
void TextRedactor::HarvestClasses(std::string_view text) {
  constexpr std::array<std::string_view, 11> kPublic = {
      "torch", "builtins", "collections", "enum", "typing",     "functools",
      "types", "numpy",    "weakref",     "abc",  "dataclasses"};
  ForEachMark(text, "<class '", [&](std::size_t at) {
    const std::string_view name = UpTo(text, at, "'\n");
    const std::string_view package = name.substr(0, name.find('.'));
    if (package.size() < name.size() &&
        std::find(kPublic.begin(), kPublic.end(), package) == kPublic.end())
      AddNamesOfCode(name);
  });
}

void TextRedactor::Harvest(std::string_view text, const InternedPaths& interned) {
  HarvestFrames(text, interned);
  HarvestTracebacks(text);
  HarvestPlaces(text);
  HarvestLookups(text);
  HarvestClasses(text);
}

}  // namespace tlparse
