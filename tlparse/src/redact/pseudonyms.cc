#include "redact/pseudonyms.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "inputs/common/plain_json.h"

namespace tlparse {
namespace {

constexpr std::string_view kBegin = "qz";
constexpr std::string_view kNumberBegin = "917";
constexpr std::size_t kNumberDigits = 9;

// "qzab" in the case of `name`.
std::string InCaseOf(std::string_view name, std::string stem) {
  const bool has_lower = std::any_of(name.begin(), name.end(), IsLowerCase);
  const auto first = std::find_if(name.begin(), name.end(), IsLetter);
  if (first == name.end() || !IsUpperCase(*first)) return stem;
  for (std::size_t i = 0; i < stem.size() && (i == 0 || (!has_lower && name.size() > 1)); ++i)
    stem[i] = UpperAscii(stem[i]);
  return stem;
}

}  // namespace

void Pseudonyms::Add(const std::string& name, const std::string& pseudonym) {
  pseudonyms_.emplace(name, pseudonym);
  names_.emplace(pseudonym, name);
}

const std::string& Pseudonyms::Of(std::string_view name) {
  const std::string exact(name);
  if (const auto found = pseudonyms_.find(exact); found != pseudonyms_.end()) return found->second;
  std::string& stem = stems_[InLowerCase(name)];
  std::string pseudonym = stem.empty() ? stem : InCaseOf(name, stem);
  while (pseudonym.empty() || names_.contains(pseudonym)) {
    stem = kBegin;
    std::size_t number = stem_count_++;
    for (int i = 0; i < 3 || number > 0; ++i, number /= 26)
      stem += static_cast<char>('a' + number % 26);
    pseudonym = InCaseOf(name, stem);
  }
  Add(exact, pseudonym);
  return pseudonyms_.at(exact);
}

const std::string& Pseudonyms::OfAddress(std::string_view address) {
  const std::string exact(address);
  if (const auto found = pseudonyms_.find(exact); found != pseudonyms_.end()) return found->second;
  std::string pseudonym;
  do {
    ++address_count_;
    pseudonym = fmt::format("198.{}.{}.{}", 18 + (address_count_ >> 16) % 2,
                            (address_count_ >> 8) % 256, address_count_ % 256);
  } while (names_.contains(pseudonym));
  Add(exact, pseudonym);
  return pseudonyms_.at(exact);
}

const std::string& Pseudonyms::OfNumber(std::string_view number) {
  const std::string exact(number);
  if (const auto found = pseudonyms_.find(exact); found != pseudonyms_.end()) return found->second;
  std::string pseudonym;
  do {
    pseudonym = fmt::format("{}{:06}", kNumberBegin, ++number_count_);
  } while (names_.contains(pseudonym));
  Add(exact, pseudonym);
  return pseudonyms_.at(exact);
}

// "917000001" and "917,000,001" at the beginning of `text`; 0: neither.
std::size_t Pseudonyms::NumberLength(std::string_view text) {
  std::size_t digits = 0, at = 0;
  for (; at < text.size() && digits < kNumberDigits; ++at) {
    if (IsDigit(text[at])) {
      ++digits;
    } else if (text[at] != ',' || digits % 3 != 0) {
      return 0;
    }
  }
  return text.starts_with(kNumberBegin) && digits == kNumberDigits ? at : 0;
}

std::string Pseudonyms::Translate(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins =
        at == 0 || !IsLetter(text[at - 1]) || (IsUpperCase(text[at]) && !IsUpperCase(text[at - 1]));
    if (const std::size_t length = NumberLength(text.substr(at)); length > 0) {
      std::string number(text.substr(at, length));
      std::erase(number, ',');
      const auto found = names_.find(number);
      out += found == names_.end() ? text.substr(at, length) : found->second;
      at += length;
      continue;
    }
    const bool is_address = text.substr(at).starts_with("198.1");
    std::size_t end = at;
    if (is_address) {
      while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
    } else if (begins && (text[at] == 'q' || text[at] == 'Q')) {
      while (end < text.size() && IsLetter(text[end])) ++end;
    }
    // The longest beginning that is a pseudonym: behind it another word may follow.
    auto found = names_.end();
    for (; end > at + 2 && found == names_.end(); --end) {
      found = names_.find(std::string(text.substr(at, end - at)));
      if (found != names_.end()) break;
    }
    if (found == names_.end()) {
      out += text[at++];
    } else {
      out += found->second;
      at = end;
    }
  }
  return out;
}

Result<void> Pseudonyms::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (access(path.c_str(), F_OK) != 0) return {};
    return Fail(ErrorCode::kIo, fmt::format("the key '{}' cannot be read", path));
  }
  std::stringstream text;
  text << file.rdbuf();
  const PlainDocument document = ReadPlainJson(text.str());
  const PlainValue names = document.tree.root()["names"];
  if (document.problem || names.type() != PlainValue::Type::kDict)
    return Fail(ErrorCode::kNotATrace, fmt::format("'{}' is no key of tlparse redact", path));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [key, value] = names.Member(i);
    const std::string pseudonym(key.Text().value_or("")), name(value.Text().value_or(""));
    Add(name, pseudonym);
    if (pseudonym.starts_with("198."))
      ++address_count_;
    else if (pseudonym.starts_with(kNumberBegin))
      ++number_count_;
    else
      stems_[InLowerCase(name)] = InLowerCase(pseudonym);
  }
  stem_count_ = stems_.size();
  return {};
}

Result<void> Pseudonyms::Save(const std::string& path) const {
  std::vector<std::pair<std::string, std::string>> sorted(names_.begin(), names_.end());
  std::sort(sorted.begin(), sorted.end());
  JsonWriter json;
  json.BeginObject().Key("version").Int(1).Key("names").BeginObject();
  for (const auto& [pseudonym, name] : sorted) json.Key(pseudonym).String(name);
  json.EndObject().EndObject();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto length = static_cast<ssize_t>(json.text().size());
  const bool is_written =
      file >= 0 && write(file, json.text().data(), json.text().size()) == length;
  if (file < 0 || close(file) != 0 || !is_written)
    return Fail(ErrorCode::kIo, fmt::format("the key '{}' cannot be written", path));
  return {};
}

}  // namespace tlparse
