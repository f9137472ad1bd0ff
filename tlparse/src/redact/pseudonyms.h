// The names that were replaced, and what stands for them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace tlparse {

// A pseudonym is "qz" and letters, in the case of the name that it stands for ("qzab", "Qzab", "QZAB"): readers take digits off names, and no word of
// PyTorch begins so. Different names have different pseudonyms.
class Pseudonyms {
 public:
  // The pseudonym of `name`, a new one if it has none. A name that differs in case alone differs in case alone, where that is possible.
  const std::string& Of(std::string_view name);
  // The pseudonym of an IPv4 address: one of 198.18.0.0/15, which no host has.
  const std::string& OfAddress(std::string_view address);
  // The pseudonym of a number: one of nine digits that begins with 917.
  const std::string& OfNumber(std::string_view number);
  // `text` with the names instead of the pseudonyms.
  std::string Translate(std::string_view text) const;

  std::size_t size() const { return pseudonyms_.size(); }
  // The key: a JSON object {"version": 1, "names": {pseudonym: name}}, mode 0600. A missing file is an empty key.
  Result<void> Load(const std::string& path);
  Result<void> Save(const std::string& path) const;

 private:
  static std::size_t NumberLength(std::string_view text);
  void Add(const std::string& name, const std::string& pseudonym);

  std::unordered_map<std::string, std::string> pseudonyms_;  // by name
  std::unordered_map<std::string, std::string> names_;       // by pseudonym
  std::unordered_map<std::string, std::string> stems_;       // "qzab" by name in lower case
  std::size_t stem_count_ = 0;
  std::size_t address_count_ = 0;
  std::size_t number_count_ = 0;
};

}  // namespace tlparse
