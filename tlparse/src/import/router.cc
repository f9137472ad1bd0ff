#include "import/router.h"

#include <algorithm>

#include "artifacts/common/cache/cache_events.h"
#include "log/damaged_header.h"

namespace tlparse {

namespace {
constexpr std::string_view kArtifactPrefix = "artifact/";

bool Matches(std::string_view key, std::string_view prefix, std::string_view suffix) {
  return key.size() >= prefix.size() + suffix.size() && key.starts_with(prefix) &&
         key.ends_with(suffix);
}
}  // namespace

FamilyFinder::FamilyFinder() {
  const std::span<const Artifact* const> families = AllArtifacts();
  for (std::size_t family = 0; family < families.size(); ++family) {
    for (const ArtifactKey& declared : families[family]->keys) {
      std::string_view key = declared.text;
      const bool is_artifact = key.starts_with(kArtifactPrefix);
      if (is_artifact) key.remove_prefix(kArtifactPrefix.size());
      if (const std::size_t star = key.find('*'); star != std::string_view::npos) {
        (is_artifact ? artifact_patterns_ : kind_patterns_)
            .push_back({key.substr(0, star), key.substr(star + 1), family});
      } else {
        (is_artifact ? artifacts_ : kinds_).emplace(key, family);
      }
    }
  }
  const auto longer = [](const Pattern& a, const Pattern& b) {
    return a.prefix.size() + a.suffix.size() > b.prefix.size() + b.suffix.size();
  };
  std::stable_sort(artifact_patterns_.begin(), artifact_patterns_.end(), longer);
  std::stable_sort(kind_patterns_.begin(), kind_patterns_.end(), longer);
}

std::optional<std::size_t> FamilyFinder::Find(const Keys& keys,
                                              const std::vector<Pattern>& patterns,
                                              std::string_view key) {
  if (const auto found = keys.find(key); found != keys.end()) return found->second;
  for (const Pattern& pattern : patterns)
    if (Matches(key, pattern.prefix, pattern.suffix)) return pattern.family;
  return std::nullopt;
}

std::optional<std::size_t> FamilyFinder::Find(std::string_view kind, std::string_view name) const {
  if (kind != "artifact") return Find(kinds_, kind_patterns_, kind);
  if (name.empty()) return std::nullopt;
  return Find(artifacts_, artifact_patterns_, name);
}

Router::Router(TableSet& tables) {
  for (const Artifact* artifact : AllArtifacts()) {
    ingestors_.push_back(artifact->create());
    ingestors_.back()->Prepare(tables);
  }
}

Ingestor* Router::Find(std::string_view kind, std::string_view name) const {
  const std::optional<std::size_t> family = finder_.Find(kind, name);
  return family ? ingestors_[*family].get() : nullptr;
}

Ingestor* Router::Find(std::string_view kind, std::string_view name, TextId name_id) {
  if (kind != "artifact" || name.empty()) return Find(kind, name);
  const auto [entry, is_new] = by_name_.try_emplace(name_id, nullptr);
  if (is_new) entry->second = Find(kind, name);
  return entry->second;
}

bool IsKnownRecordKey(std::string_view key) {
  if (key == "artifact" || key == "str") return true;
  for (const Artifact* artifact : AllArtifacts()) {
    for (const auto& [own, traits] : artifact->keys) {
      if (own.starts_with(kArtifactPrefix)) continue;
      const std::size_t star = own.find('*');
      if (star == std::string_view::npos ? own == key
                                         : Matches(key, own.substr(0, star), own.substr(star + 1)))
        return true;
    }
  }
  return false;
}

bool HasUnknownLayer(std::string_view name) {
  const std::optional<CacheEventName> parsed = ParseCacheEventName(name);
  return parsed && !IsKnownCacheLayer(parsed->layer);
}

std::string SimilarKey(std::string_view kind, std::string_view name) {
  constexpr std::size_t kLeast = 5;
  if (name.size() < kLeast) return {};
  const bool is_artifact = kind == "artifact";
  if (is_artifact && HasUnknownLayer(name)) {
    const std::string_view layer = ParseCacheEventName(name)->layer;
    const std::string_view similar = SimilarCacheLayer(layer);
    return similar.empty() ? std::string() : std::string(similar).append(name.substr(layer.size()));
  }
  for (const Artifact* artifact : AllArtifacts()) {
    for (const ArtifactKey& declared : artifact->keys) {
      std::string_view key = declared.text;
      if (key.starts_with(kArtifactPrefix) != is_artifact) continue;
      if (is_artifact) key.remove_prefix(kArtifactPrefix.size());
      const std::size_t star = key.find('*');
      if (star == std::string_view::npos) {
        if (DiffersInOneCharacter(key, name)) return std::string(key);
        continue;
      }
      // The part that the pattern names must be long enough to be recognised.
      const std::string_view prefix = key.substr(0, star), suffix = key.substr(star + 1);
      if (name.size() < prefix.size() + suffix.size() || prefix.size() + suffix.size() < kLeast)
        continue;
      const std::string_view head = name.substr(0, prefix.size());
      const std::string_view tail = name.substr(name.size() - suffix.size());
      if ((head == prefix && DiffersInOneCharacter(tail, suffix)) ||
          (tail == suffix && DiffersInOneCharacter(head, prefix)))
        return std::string(key);
    }
  }
  if (!is_artifact && DiffersInOneCharacter("artifact", name)) return "artifact";
  return {};
}

KeyTraits TraitsOf(std::string_view kind, std::string_view name) {
  static const auto kTraits = [] {
    std::unordered_map<std::string_view, KeyTraits> traits;
    for (const Artifact* artifact : AllArtifacts())
      for (const ArtifactKey& key : artifact->keys) traits.emplace(key.text, key.traits);
    return traits;
  }();
  static const auto kArtifactTraits = [] {
    std::unordered_map<std::string_view, KeyTraits> traits;
    for (const auto& [key, declared] : kTraits)
      if (key.starts_with(kArtifactPrefix))
        traits.emplace(key.substr(kArtifactPrefix.size()), declared);
    return traits;
  }();
  const auto& traits = kind == "artifact" ? kArtifactTraits : kTraits;
  const auto found = traits.find(kind == "artifact" ? name : kind);
  return found == traits.end() ? KeyTraits() : found->second;
}

}  // namespace tlparse
