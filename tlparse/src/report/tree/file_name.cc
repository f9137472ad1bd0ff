#include "report/tree/file_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/md5.h"
#include "base/utf8.h"

namespace tlparse {
namespace {

bool IsReserved(unsigned char byte) {
  constexpr std::string_view kReserved = "/\\:*?\"<>|";
  return byte < 0x20 || byte == 0x7f ||
         kReserved.find(static_cast<char>(byte)) != std::string_view::npos;
}

// CON, NUL, COM1 …: Windows takes them for devices whatever follows the first dot.
bool IsDeviceName(std::string_view name) {
  std::string base(name.substr(0, name.find('.')));
  std::transform(base.begin(), base.end(), base.begin(), LowerAscii);
  static constexpr std::array<std::string_view, 4> kDevices = {"con", "prn", "aux", "nul"};
  if (std::find(kDevices.begin(), kDevices.end(), base) != kDevices.end()) return true;
  return base.size() == 4 && (base.starts_with("com") || base.starts_with("lpt")) &&
         IsDigit(base[3]);
}

// The longest prefix of at most `size` bytes that ends between two characters.
std::string_view CutAtCharacter(std::string_view text, std::size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

std::string CleanStem(std::string_view stem) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // what SanitizeUtf8 puts in
  const std::string text = SanitizeUtf8(stem);
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view(text).substr(i).starts_with(kReplacement)) {
      clean += '_';
      i += kReplacement.size() - 1;
    } else {
      clean += IsReserved(static_cast<unsigned char>(text[i])) ? '_' : text[i];
    }
  }
  return clean;
}

}  // namespace

std::string SafeFileName(std::string_view stem, std::string_view suffix) {
  suffix = suffix.substr(0, kMaxFileNameBytes / 2);
  std::string clean = CleanStem(stem);
  const std::size_t room = kMaxFileNameBytes - suffix.size() - 1;
  if (clean.size() > room) {
    constexpr std::size_t kTagBytes = 9;
    clean.resize(CutAtCharacter(clean, room - kTagBytes).size());
    clean += fmt::format("~{}", ToHex(Md5(stem)).substr(0, kTagBytes - 1));
  }
  std::string name = fmt::format("{}{}", clean, suffix);
  if (name.empty() || name == "." || name == ".." || IsDeviceName(name)) {
    name = fmt::format("_{}", name);
  }
  if (name.back() == '.' || name.back() == ' ') name.back() = '_';  // Windows drops them
  return name;
}

std::string UniqueNames::Next(std::string_view stem, std::string_view suffix) {
  const auto take = [this](std::string_view name) {
    std::string folded(name);
    std::transform(folded.begin(), folded.end(), folded.begin(), LowerAscii);
    return used_.insert(std::move(folded)).second;
  };
  std::string name = SafeFileName(stem, suffix);
  for (int count = 2; !take(name); ++count) {
    name = SafeFileName(stem, fmt::format("~{}{}", count, suffix));
  }
  return name;
}

std::string_view FileStem(std::string_view path) {
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (name == "." || name == "..") return {};
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string UrlFromPath(std::string_view path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string url;
  url.reserve(path.size());
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsAlphanumeric(c) || std::string_view("-_.~/").find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += '%';
      url += kHex[byte >> 4];
      url += kHex[byte & 15];
    }
  }
  return url;
}

}  // namespace tlparse
