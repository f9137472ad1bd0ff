// Same key, different generated code: what a cache must never give.
#include "queries/facts/cache/cache_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "artifacts/common/text/normalize.h"
#include "base/ascii.h"
#include "facts/cache/cache.h"
#include "facts/contents/code_difference.h"
#include "facts/text/text_diff.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

Result<std::string> NormalCode(Database& database, std::int64_t record_id) {
  ASSIGN_OR_RETURN(const std::string text,
                   database.QueryText(
                       "SELECT p.content "
                       "FROM record_row r JOIN payload_row p ON p.id = r.payload_id WHERE r.id = ?",
                       record_id));
  std::string buffer;
  return std::string(NormalizeCode(text, buffer));
}

// Whether a size in the text is a symbol: s77, u0.
bool HasSymbol(std::string_view text) {
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    if ((text[at] != 's' && text[at] != 'u') || !IsDigit(text[at + 1])) continue;
    if (text[at - 1] == ' ' || text[at - 1] == '[' || text[at - 1] == '(' || text[at - 1] == '\'' ||
        text[at - 1] == '*')
      return true;
  }
  return false;
}

struct CodeUse {
  std::int64_t record_id = 0, compile_id = 0;
  std::vector<RankIndex> ranks;
};
// Cache keys with several codes: their codes by content id.
using OddKeys = std::map<std::string, std::map<std::int64_t, CodeUse>>;

// With dynamic shapes one key has an entry per set of guards, and each its own code: those keys are
// left out. They show by a lookup that found entries but none whose guards held, or by a symbol
// among the inputs.
class DynamicKeys {
 public:
  // `odd` has the keys that will be asked for.
  static Result<DynamicKeys> Load(Database& database, const OddKeys& odd) {
    ASSIGN_OR_RETURN(PreparedQuery<InputComponent> inputs,
                     PreparedQuery<InputComponent>::Make(database));
    DynamicKeys dynamic(std::move(inputs));
    FOR_EACH_ROW(const KeyWithMisses& row,
                 Query<KeyWithMisses>(database, {.guard_miss = CacheState::kGuardMiss})) {
      std::string key(row.key);
      if (odd.contains(key)) dynamic.keys_[std::move(key)].push_back({row.id, row.has_guard_miss});
    }
    return dynamic;
  }

  Result<bool> Has(const std::string& key) {
    for (const Key& one : keys_[key]) {
      if (one.has_guard_miss) return true;
      FOR_EACH_ROW(const InputComponent& input, inputs_.Run({.key_id = one.id})) {
        if (HasSymbol(input.value)) return true;
      }
    }
    return false;
  }

 private:
  struct Key {
    std::int64_t id;
    bool has_guard_miss;
  };
  explicit DynamicKeys(PreparedQuery<InputComponent> inputs) : inputs_(std::move(inputs)) {}

  std::map<std::string, std::vector<Key>> keys_;
  PreparedQuery<InputComponent> inputs_;
};

// Most jobs have none, and to find out is quicker here than in SQL.
Result<bool> HasKeyWithCodes(Database& database, const Job& job) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>> codes;
  FOR_EACH_ROW(const KeyWithCode& row,
               Query<KeyWithCode>(database, {.in_compiles = job.InCompiles("g.compile_id")})) {
    const Hash128 key = HashBytes(row.key);
    codes.emplace_back(key.low, key.high, row.content_id);
  }
  std::sort(codes.begin(), codes.end());
  return std::adjacent_find(codes.begin(), codes.end(), [](const auto& a, const auto& b) {
           return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b) &&
                  std::get<2>(a) != std::get<2>(b);
         }) != codes.end();
}

// Diffs are made of the first findings; where there are more, the cache as such is broken.
constexpr std::size_t kMostDiffs = 100;

}  // namespace

// Codes are compared without the expected differences (normalize.h: AOT id, cache paths, provenance
// handles, addresses, device index); the content id of a code identifies this text.
Result<std::vector<SameKeyCode>> FindSameKeyCodes(Database& database, const Job& job) {
  ASSIGN_OR_RETURN(const bool has_odd, HasKeyWithCodes(database, job));
  if (!has_odd) return std::vector<SameKeyCode>();
  OddKeys keys;
  // Few keys qualify; only their uses are read one by one.
  FOR_EACH_ROW(const CodeOfKey& row,
               Query<CodeOfKey>(database, {.in_compiles = job.InCompiles("g.compile_id")})) {
    const RankIndex participant = job.ParticipantOfProcess(row.process_id);
    if (participant < 0) continue;
    CodeUse& use = keys[std::string(row.key)][row.content_id];
    if (use.record_id == 0) {
      use.record_id = row.record_id;
      use.compile_id = row.compile_id;
    }
    if (use.ranks.empty() || use.ranks.back() != participant) use.ranks.push_back(participant);
  }
  std::vector<SameKeyCode> result;
  std::erase_if(keys, [](const auto& key) { return key.second.size() < 2; });
  if (keys.empty()) return result;
  ASSIGN_OR_RETURN(DynamicKeys dynamic, DynamicKeys::Load(database, keys));
  for (auto& [key, codes] : keys) {
    ASSIGN_OR_RETURN(const bool is_dynamic, dynamic.Has(key));
    if (is_dynamic) continue;
    auto reference = codes.begin();
    for (auto code = codes.begin(); code != codes.end(); ++code) {
      if (code->second.ranks.size() > reference->second.ranks.size()) reference = code;
    }
    std::string reference_text;
    if (result.size() < kMostDiffs) {
      ASSIGN_OR_RETURN(reference_text, NormalCode(database, reference->second.record_id));
    }
    for (auto code = codes.begin(); code != codes.end(); ++code) {
      if (code == reference) continue;
      SameKeyCode finding;
      finding.key = key;
      finding.ranks = reference->second.ranks;
      finding.other_ranks = code->second.ranks;
      finding.record_id = reference->second.record_id;
      finding.other_record_id = code->second.record_id;
      finding.compile_id = reference->second.compile_id;
      if (result.size() < kMostDiffs) {
        ASSIGN_OR_RETURN(const std::string text, NormalCode(database, code->second.record_id));
        if (AreEqualButForNames(reference_text, text)) continue;
        finding.target = TargetChange(reference_text, text);
        finding.diff = UnifiedDiff(reference_text, text, "ranks " + job.FormatRanks(finding.ranks),
                                   "ranks " + job.FormatRanks(finding.other_ranks));
      }
      result.push_back(std::move(finding));
    }
  }
  return result;
}

}  // namespace tlparse
