// Finds the ingestor of a record.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifacts/artifact.h"

namespace tlparse {

class Router {
 public:
  explicit Router(TableSet& tables);

  // The owner of a record, by its kind and (for artifacts) its name; nullptr: unknown. `name_id`
  // is the name's key in a cache.
  Ingestor* Find(std::string_view kind, std::string_view name, TextId name_id);
  const std::vector<std::unique_ptr<Ingestor>>& ingestors() const { return ingestors_; }

 private:
  struct Pattern {
    std::string_view prefix;  // at most one of them is empty
    std::string_view suffix;
    Ingestor* ingestor;
  };
  Ingestor* FindArtifact(std::string_view name) const;

  std::vector<std::unique_ptr<Ingestor>> ingestors_;
  std::unordered_map<std::string_view, Ingestor*> kinds_;
  std::unordered_map<std::string_view, Ingestor*> artifacts_;
  std::vector<Pattern> artifact_patterns_;  // longest first
  std::vector<Pattern> kind_patterns_;
  std::unordered_map<TextId, Ingestor*> by_name_;
};

// Whether a family owns this record key. For the envelope's parser; any thread.
bool IsKnownRecordKey(std::string_view key);

// What is declared of the key of a record of this kind and (for artifacts) name. Any thread.
KeyTraits TraitsOf(std::string_view kind, std::string_view name);

}  // namespace tlparse
