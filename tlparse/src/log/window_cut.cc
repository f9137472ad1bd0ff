#include "log/window_cut.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "log/glog_prefix.h"
#include "log/line_index.h"

namespace tlparse {

namespace {

constexpr std::size_t kFirstLook = 64 << 10;

// The stanzas of a window, one by one.
struct Stanzas {
  std::string_view bytes;
  const std::vector<StanzaStart>& starts;
  std::size_t Offset(std::size_t index) const {
    return index < starts.size() ? starts[index].offset : bytes.size();
  }
  std::string_view Text(std::size_t index) const {
    return bytes.substr(Offset(index), Offset(index + 1) - Offset(index));
  }
};

// A record of an aggregated log whose payload lines do not follow it at once.
struct TornRecord {
  std::size_t offset;
  std::size_t end;  // of its last line so far: where that stanza begins
};

bool IsWaiting(std::string_view stanza) {
  const bool has_lines = stanza.find('\n') + 1 < stanza.size();
  return !has_lines && FirstLine(stanza).find("\"has_payload\"") != std::string_view::npos;
}

// As FindCut, for the stanzas first … last of which the headers have "[rankN]:": `cut` is in front
// of the last header.
std::size_t CutOfRanks(const Stanzas& stanzas, std::size_t first, std::size_t last,
                       std::size_t cut) {
  std::vector<TornRecord> torn;
  // Rank → the one of `torn` that its lines belong to
  std::unordered_map<std::int64_t, std::size_t> latest;
  for (std::size_t index = first; index <= last; ++index) {
    const std::string_view text = stanzas.Text(index);
    const std::optional<RankPrefix> rank = ParseRankPrefix(text);
    if (!rank) continue;
    if (text.substr(rank->length).starts_with('\t')) {
      const auto owner = latest.find(rank->rank);
      if (owner != latest.end()) torn[owner->second].end = stanzas.Offset(index);
    } else if (ParseGlogPrefix(FirstLine(text))) {
      latest.erase(rank->rank);
      if (!IsWaiting(text)) continue;
      latest.emplace(rank->rank, torn.size());
      torn.push_back({stanzas.Offset(index), stanzas.Offset(index)});
    }
  }
  for (const auto& [rank, index] : latest) cut = std::min(cut, torn[index].offset);
  for (auto record = torn.rbegin(); record != torn.rend(); ++record) {
    if (record->offset < cut && record->end >= cut) cut = record->offset;
  }
  return cut;
}

// FindCut by the last stanzas of `bytes`; nothing: those before them decide.
std::optional<std::size_t> CutOf(std::string_view bytes, const std::vector<StanzaStart>& starts,
                                 bool are_all) {
  if (starts.empty()) return are_all ? std::optional<std::size_t>(0) : std::nullopt;
  const Stanzas stanzas{bytes, starts};
  const std::size_t last = starts.size() - 1;
  std::optional<std::size_t> cut;  // in front of the last header
  std::size_t index = last + 1;
  bool is_decided = false;
  while (index > 0 && !is_decided) {
    --index;
    // A line that is not all there yet is a header if it begins like one; else it may be foreign,
    // and the record before it is open.
    if (const std::optional<GlogPrefix> prefix = ParseGlogPrefix(FirstLine(stanzas.Text(index)))) {
      if (!cut) cut = stanzas.Offset(index);
      if (!prefix->rank)
        return *cut == stanzas.Offset(index) ? *cut : CutOfRanks(stanzas, index, last, *cut);
    }
    // From here to the end everything is foreign; a record's own payload lines do not count,
    // however long they are.
    is_decided = bytes.size() - stanzas.Offset(index) >= kMaxTornBytes;
  }
  if (!is_decided && !are_all) return std::nullopt;
  if (cut) return CutOfRanks(stanzas, index, last, *cut);
  // Only foreign lines for a while: nothing before the last one can still grow. TAB lines of no
  // record need not stay together.
  const bool is_whole = stanzas.Text(last).find('\n') != std::string_view::npos;
  return stanzas.Offset(last) == 0 && is_whole ? bytes.rfind('\n') + 1 : stanzas.Offset(last);
}

// The stanzas that begin in the last `size` bytes, the first of these left out: it may be inside of
// one.
void FindLastStanzas(std::string_view bytes, std::size_t size, std::vector<StanzaStart>& starts) {
  const std::size_t from = bytes.size() - std::min(bytes.size(), size);
  starts.clear();
  FindStanzas(bytes.substr(from), starts);
  if (from == 0) return;
  starts.erase(starts.begin());
  for (StanzaStart& start : starts) start.offset += from;
}

}  // namespace

Cut FindCut(std::string_view bytes) {
  std::vector<StanzaStart> starts;
  for (std::size_t size = kFirstLook;; size *= 4) {
    FindLastStanzas(bytes, size, starts);
    const bool are_all = size >= bytes.size();
    if (const std::optional<std::size_t> cut = CutOf(bytes, starts, are_all))
      return {*cut, !starts.empty() && starts.back().offset == *cut};
  }
}

}  // namespace tlparse
