// Replaces names in any text of PyTorch: JSON, generated code, graphs, guards, messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "redact/pseudonyms.h"

namespace tlparse {

// What stays: words of PyTorch (public_words.h), digits and punctuation, addresses of memory, cache keys and other hashes. What is replaced: words that PyTorch does not
// have; names of the user's functions, classes, modules and variables, also if they are made of PyTorch's words, unless PyTorch has a thing of that whole name;
// each directory and file name of a path outside the packages of Python; IPv4 addresses. A name within a longer one is replaced there too
// (`l_self_modules_<name>_parameters_weight_`), so joins by name stay.
class TextRedactor {
 public:
  // `hides_sizes`: whole numbers from 10 on are replaced as well where they can be sizes of tensors (sizes.cc says where).
  TextRedactor(Pseudonyms& pseudonyms, bool hides_sizes)
      : pseudonyms_(pseudonyms), hides_sizes_(hides_sizes) {}

  // Takes the user's names from a text: call it with all texts first. `interned`: the paths that frames refer to by number in this file.
  using InternedPaths = std::unordered_map<std::int64_t, std::string>;
  void Harvest(std::string_view text, const InternedPaths& interned);
  // The same from a frame of a stack. False: it is no frame of the user's.
  bool HarvestFrame(std::string_view function, std::string_view path);

  // The text with pseudonyms; the same text gives the same. Escapes of JSON stay valid.
  std::string Redact(std::string_view text);
  // The same of a text that is JSON: of its numbers outside strings only those are sizes whose key says so.
  std::string RedactJson(std::string_view json);

  std::int64_t replaced() const { return replaced_; }  // occurrences

 private:
  void AddName(std::string_view name);
  void AddNamesOfCode(std::string_view code);
  void HarvestFrames(std::string_view text, const InternedPaths& interned);
  void HarvestTracebacks(std::string_view text);
  void HarvestPlaces(std::string_view text);
  void HarvestLookups(std::string_view text);
  void HarvestClasses(std::string_view text);

  void RedactPath(std::string_view path, std::string& out);
  void RedactPathPart(std::string_view part, std::string& out);
  void RedactName(std::string_view name, std::string& out);
  void RedactNewName(std::string_view name, std::string& out);
  void RedactPart(std::string_view part, std::string& out);
  void Replace(std::string_view name, std::string& out);
  bool ReplaceSize(std::string_view text, std::size_t at, std::size_t end, std::string& out);

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct RedactedName {
    std::string text;
    std::int64_t replaced = 0;
  };

  Pseudonyms& pseudonyms_;
  bool hides_sizes_;
  std::unordered_set<std::string, TextHash, std::equal_to<>>
      user_names_;  // lower case, without underscores around them
  std::unordered_set<std::string, TextHash, std::equal_to<>> user_files_;  // "train.py"
  // What became of names: texts have the same ones again and again. Empty while names are taken.
  std::unordered_map<std::string, RedactedName, TextHash, std::equal_to<>> redacted_names_;
  std::int64_t replaced_ = 0;
};

}  // namespace tlparse
