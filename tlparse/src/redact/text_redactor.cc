#include "redact/text_redactor.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.h"
#include "redact/characters.h"
#include "redact/public_words.h"

namespace tlparse {

using redact::IsHash;
using redact::IsPathCharacter;
using redact::IsWordLetter;
using redact::RunEnd;

namespace {

constexpr std::array<std::string_view, 13> kFileEndings = {".py",  ".json", ".log", ".txt", ".so",
                                                           ".cpp", ".cu",   ".h",   ".pt",  ".pt2",
                                                           ".gz",  ".yaml", ".sh"};
// The last three are of addresses of PyTorch's debug server.
constexpr std::array<std::string_view, 17> kPublicFolders = {
    "",    ".",    "..",  "tmp", "usr", "lib",     "lib64",          "local",     "opt",
    "bin", "proc", "dev", "shm", "var", "handler", "dump_traceback", "pyspy_dump"};

constexpr std::size_t kLongestWord = 20;  // no word with digits in it is as long

// Where the part of a path begins that is Python's: its packages.
std::size_t PackagesAt(std::string_view path) {
  for (const std::string_view begin : {"site-packages/", "dist-packages/"})
    if (const std::size_t at = path.find(begin); at != std::string_view::npos) return at;
  const std::size_t library = path.find("/lib/python3");
  return library == std::string_view::npos ? path.size() : library + 1;
}

bool IsAddressText(std::string_view text) {
  int parts = 0;
  for (std::size_t at = 0; at < text.size(); ++parts) {
    const std::size_t end = RunEnd(text, at, IsDigit);
    if (end == at || end - at > 3 || (end < text.size() && text[end] != '.')) return false;
    at = end + (end < text.size() ? 1 : 0);
  }
  return parts == 4 && !text.ends_with('.');
}

// "u00e9" of an escape of JSON: a character beyond ASCII.
bool IsLetterEscape(std::string_view text) {
  constexpr std::size_t kLength = 5;
  if (text.size() < kLength || text[0] != 'u') return false;
  const std::string_view digits = text.substr(1, kLength - 1);
  return digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos &&
         (!digits.starts_with("00") || digits[2] >= '8');
}

// A path, not "compiles/s" or "0/0": absolute, or it names a file.
bool LooksLikePath(std::string_view text) {
  if (text.find('/') == std::string_view::npos || text.find("//") != std::string_view::npos)
    return false;
  if (text.starts_with('/') || text.starts_with("~/") || text.starts_with("./") ||
      text.starts_with("../"))
    return text.size() > 2 &&
           RunEnd(text, 0, [](char c) { return !IsWordLetter(c); }) < text.size();
  for (const std::string_view ending : kFileEndings)
    if (text.ends_with(ending)) return true;
  return false;
}

}  // namespace

void TextRedactor::Replace(std::string_view name, std::string& out) {
  ++replaced_;
  out += pseudonyms_.Of(name);
}

// Letters and digits: "Acme2Net", "buf0", "f32".
void TextRedactor::RedactPart(std::string_view part, std::string& out) {
  const bool has_digit = std::any_of(part.begin(), part.end(), IsDigit);
  if (IsHash(part)) {
    out += part;
    return;
  }
  if (has_digit && part.size() >= kLongestWord && !part.starts_with("0x")) {
    Replace(part, out);
    return;
  }
  for (std::size_t at = 0; at < part.size();) {
    std::size_t end = RunEnd(part, at, IsDigit);
    out += part.substr(at, end - at);
    at = end;
    // One word: "Acme" of "AcmeNet", "HTTP" of "HTTPServer".
    end = RunEnd(part, at, IsUpperCase);
    if (end > at + 1 && end < part.size() && IsLowerCase(part[end])) --end;
    if (end <= at + 1)
      end = RunEnd(part, end, [](char c) { return IsWordLetter(c) && !IsUpperCase(c); });
    const std::string_view word = part.substr(at, end - at);
    if (word.empty()) continue;
    if (IsPublicWord(InLowerCase(word)))
      out += word;
    else
      Replace(word, out);
    at = end;
  }
}

// Letters, digits and underscores: a name of PyTorch's stays (fx_kwargs, where the user has kwargs); else the longest of the user's names in it
// are replaced whole, other parts word by word.
void TextRedactor::RedactName(std::string_view name, std::string& out) {
  constexpr std::size_t kMostNames = 1 << 16;
  const auto found = redacted_names_.find(name);
  if (found != redacted_names_.end()) {
    out += found->second.text;
    replaced_ += found->second.replaced;
    return;
  }
  const std::size_t begin = out.size();
  const std::int64_t before = replaced_;
  RedactNewName(name, out);
  if (redacted_names_.size() < kMostNames)
    redacted_names_.emplace(name, RedactedName{out.substr(begin), replaced_ - before});
}

void TextRedactor::RedactNewName(std::string_view name, std::string& out) {
  constexpr std::size_t kMostParts = 12;
  if (const std::string lower = InLowerCase(name);
      lower.find('_', 1) < lower.size() - 1 && IsPublicName(lower)) {
    out += name;
    return;
  }
  std::vector<std::size_t> ends;  // of the parts between underscores
  for (std::size_t at = 0; at < name.size();) {
    at = RunEnd(name, at, [](char c) { return c == '_'; });
    if (at == name.size()) break;
    at = RunEnd(name, at, [](char c) { return c != '_'; });
    ends.push_back(at);
  }
  std::size_t at = 0;
  for (std::size_t part = 0; part < ends.size();) {
    const std::size_t begin = RunEnd(name, at, [](char c) { return c == '_'; });
    out += name.substr(at, begin - at);
    std::size_t last = std::min(ends.size(), part + kMostParts);
    for (; last > part; --last)
      if (user_names_.contains(InLowerCase(name.substr(begin, ends[last - 1] - begin)))) break;
    if (last > part) {
      Replace(name.substr(begin, ends[last - 1] - begin), out);
    } else {
      last = part + 1;
      const std::string_view one = name.substr(begin, ends[part] - begin);
      // "first1": a number that PyTorch put behind a name.
      std::size_t letters = one.size();
      while (letters > 0 && IsDigit(one[letters - 1])) --letters;
      if (letters < one.size() && letters > 0 &&
          user_names_.contains(InLowerCase(one.substr(0, letters)))) {
        Replace(one.substr(0, letters), out);
        out += one.substr(letters);
      } else {
        RedactPart(one, out);
      }
    }
    at = ends[last - 1];
    part = last;
  }
  out += name.substr(at);
}

void TextRedactor::RedactPathPart(std::string_view part, std::string& out) {
  if (std::find(kPublicFolders.begin(), kPublicFolders.end(), part) != kPublicFolders.end() ||
      part.starts_with("python3") || std::all_of(part.begin(), part.end(), IsDigit)) {
    out += part;
    return;
  }
  std::string_view ending;
  for (const std::string_view one : kFileEndings)
    if (part.ends_with(one) && part.size() > one.size()) ending = one;
  const std::string_view stem = part.substr(0, part.size() - ending.size());
  constexpr std::string_view kInductor = "torchinductor_";
  if (IsHash(stem))
    out += stem;
  else if (stem.starts_with(kInductor))
    RedactName(stem, out);
  else
    Replace(stem, out);
  out += ending;
}

void TextRedactor::RedactPath(std::string_view path, std::string& out) {
  std::size_t public_at = PackagesAt(path);
  if (path.substr(0, public_at) == path && redact::IsPathOfTorch(path)) public_at = 0;
  const std::string_view own = path.substr(0, public_at);
  for (std::size_t at = 0; at < own.size();) {
    const std::size_t end = std::min(own.find('/', at), own.size());
    RedactPathPart(own.substr(at, end - at), out);
    if (end < own.size()) out += '/';
    at = end + 1;
  }
  const std::string_view rest = path.substr(public_at);
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t end = RunEnd(rest, at, IsNameCharacter);
    RedactName(rest.substr(at, end - at), out);
    at = end;
    if (at < rest.size()) out += rest[at++];
  }
}

std::string TextRedactor::Redact(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\\') {
      // Escapes of JSON and of Python, also of texts within texts: \n, \\n, \u00e9. A character beyond ASCII is part of some name.
      std::size_t end = RunEnd(text, at, [](char one) { return one == '\\'; });
      out += text.substr(at, end - at);
      if (IsLetterEscape(text.substr(end))) {
        out += "u005f";
        end += 5;
      } else if (end < text.size()) {
        out += text[end++];
      }
      at = end;
      continue;
    }
    if (!IsPathCharacter(c) || c == '+' || c == '-' || c == '%' || c == '@') {
      out += c;
      ++at;
      continue;
    }
    std::size_t end = RunEnd(text, at, IsPathCharacter);
    while (end > at + 1 && text[end - 1] == '.') --end;
    const std::string_view token = text.substr(at, end - at);
    const std::size_t name_end = RunEnd(text, at, IsNameCharacter);
    if (LooksLikePath(token)) {
      RedactPath(token, out);
      at = end;
    } else if (user_files_.contains(token)) {
      RedactPathPart(token, out);
      at = end;
    } else if (IsAddressText(token)) {
      ++replaced_;
      out += pseudonyms_.OfAddress(token);
      at = end;
    } else if (name_end == at) {
      out += c;
      ++at;
    } else if (hides_sizes_ && ReplaceSize(text, at, name_end, out)) {
      at = name_end;
    } else if (name_end - at < kLongestWord && RunEnd(text, at, IsDigit) == name_end) {
      out += text.substr(at, name_end - at);  // nobody's name
      at = name_end;
    } else {
      RedactName(text.substr(at, name_end - at), out);
      at = name_end;
    }
  }
  return out;
}

}  // namespace tlparse
