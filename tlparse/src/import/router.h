// Finds the ingestor of a record.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifacts/artifact.h"

namespace tlparse {

// Which family a record belongs to. Any thread.
class FamilyFinder {
 public:
  FamilyFinder();
  // Its place in AllArtifacts(); nothing: unknown.
  std::optional<std::size_t> Find(std::string_view kind, std::string_view name) const;

 private:
  struct Pattern {
    std::string_view prefix;  // at most one of them is empty
    std::string_view suffix;
    std::size_t family;
  };
  using Keys = std::unordered_map<std::string_view, std::size_t>;
  static std::optional<std::size_t> Find(const Keys& keys, const std::vector<Pattern>& patterns,
                                         std::string_view key);

  Keys kinds_;
  Keys artifacts_;
  std::vector<Pattern> kind_patterns_;  // longest first
  std::vector<Pattern> artifact_patterns_;
};

class Router {
 public:
  explicit Router(TableSet& tables);

  // The owner of a record, by its kind and (for artifacts) its name; nullptr: unknown. `name_id`
  // is the name's key in a cache.
  Ingestor* Find(std::string_view kind, std::string_view name, TextId name_id);
  const std::vector<std::unique_ptr<Ingestor>>& ingestors() const { return ingestors_; }

 private:
  Ingestor* Find(std::string_view kind, std::string_view name) const;

  FamilyFinder finder_;
  std::vector<std::unique_ptr<Ingestor>> ingestors_;  // as AllArtifacts()
  std::unordered_map<TextId, Ingestor*> by_name_;
};

// Whether a family owns this record key. For the envelope's parser; any thread.
bool IsKnownRecordKey(std::string_view key);

// The record key or, where `kind` is "artifact", the artifact that `name`, which no family owns, may
// have been before one character of it was changed; empty: none. Names of four characters and less
// are too short to be compared. The same of an artifact with HasUnknownLayer. Any thread.
std::string SimilarKey(std::string_view kind, std::string_view name);

// Whether the artifact is named like a lookup in a cache that is not known.
bool HasUnknownLayer(std::string_view name);

// What is declared of the key of a record of this kind and (for artifacts) name. Any thread.
KeyTraits TraitsOf(std::string_view kind, std::string_view name);

}  // namespace tlparse
