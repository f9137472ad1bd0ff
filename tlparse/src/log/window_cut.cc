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

// The chunks of a window, one by one.
struct Chunks {
  std::string_view bytes;
  const std::vector<ChunkStart>& starts;
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
  std::size_t end;  // of its last line so far: where that chunk begins
};

bool IsWaiting(std::string_view chunk) {
  const bool has_lines = chunk.find('\n') + 1 < chunk.size();
  return !has_lines && FirstLine(chunk).find("\"has_payload\"") != std::string_view::npos;
}

// As FindCut, for the chunks first … last of which the headers have "[rankN]:": `cut` is in front
// of the last header.
std::size_t CutOfRanks(const Chunks& chunks, std::size_t first, std::size_t last, std::size_t cut) {
  std::vector<TornRecord> torn;
  // Rank → the one of `torn` that its lines belong to
  std::unordered_map<std::int64_t, std::size_t> latest;
  for (std::size_t index = first; index <= last; ++index) {
    const std::string_view text = chunks.Text(index);
    const std::optional<RankPrefix> rank = ParseRankPrefix(text);
    if (!rank) continue;
    if (text.substr(rank->length).starts_with('\t')) {
      const auto owner = latest.find(rank->rank);
      if (owner != latest.end()) torn[owner->second].end = chunks.Offset(index);
    } else if (ParseGlogPrefix(FirstLine(text))) {
      latest.erase(rank->rank);
      if (!IsWaiting(text)) continue;
      latest.emplace(rank->rank, torn.size());
      torn.push_back({chunks.Offset(index), chunks.Offset(index)});
    }
  }
  for (const auto& [rank, index] : latest) cut = std::min(cut, torn[index].offset);
  for (auto record = torn.rbegin(); record != torn.rend(); ++record) {
    if (record->offset < cut && record->end >= cut) cut = record->offset;
  }
  return cut;
}

// FindCut by the last chunks of `bytes`; nothing: those before them decide.
std::optional<std::size_t> CutOf(std::string_view bytes, const std::vector<ChunkStart>& starts,
                                 bool are_all) {
  if (starts.empty()) return are_all ? std::optional<std::size_t>(0) : std::nullopt;
  const Chunks chunks{bytes, starts};
  const std::size_t last = starts.size() - 1;
  std::optional<std::size_t> cut;  // in front of the last header
  std::size_t index = last + 1;
  bool is_decided = false;
  while (index > 0 && !is_decided) {
    --index;
    // A line that is not all there yet is a header if it begins like one; else it may be foreign,
    // and the record before it is open.
    if (const std::optional<GlogPrefix> prefix = ParseGlogPrefix(FirstLine(chunks.Text(index)))) {
      if (!cut) cut = chunks.Offset(index);
      if (!prefix->rank)
        return *cut == chunks.Offset(index) ? *cut : CutOfRanks(chunks, index, last, *cut);
    }
    // From here to the end everything is foreign; a record's own payload lines do not count,
    // however long they are.
    is_decided = bytes.size() - chunks.Offset(index) >= kMaxTornBytes;
  }
  if (!is_decided && !are_all) return std::nullopt;
  if (cut) return CutOfRanks(chunks, index, last, *cut);
  // Only foreign lines for a while: nothing before the last one can still grow. TAB lines of no
  // record need not stay together.
  const bool is_whole = chunks.Text(last).find('\n') != std::string_view::npos;
  return chunks.Offset(last) == 0 && is_whole ? bytes.rfind('\n') + 1 : chunks.Offset(last);
}

// The chunks that begin in the last `size` bytes, the first of these left out: it may be inside of
// one.
void FindLastChunks(std::string_view bytes, std::size_t size, std::vector<ChunkStart>& starts) {
  const std::size_t from = bytes.size() - std::min(bytes.size(), size);
  starts.clear();
  FindChunks(bytes.substr(from), starts);
  if (from == 0) return;
  starts.erase(starts.begin());
  for (ChunkStart& start : starts) start.offset += from;
}

}  // namespace

Cut FindCut(std::string_view bytes) {
  std::vector<ChunkStart> starts;
  for (std::size_t size = kFirstLook;; size *= 4) {
    FindLastChunks(bytes, size, starts);
    const bool are_all = size >= bytes.size();
    if (const std::optional<std::size_t> cut = CutOf(bytes, starts, are_all))
      return {*cut, !starts.empty() && starts.back().offset == *cut};
  }
}

}  // namespace tlparse
