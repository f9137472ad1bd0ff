// Bytes beside time: what lines, graphs, kernels and nodes held when the most memory was in use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/cost/cost.h"
#include "store/database.h"

namespace tlparse {

// What was alive at the peak of a recording (a device of a snapshot or profile); of several recordings
// that which held more. Nothing: no recording says of it that it held anything.
class PeakBytes {
 public:
  // Of the processes of these profiles; empty: of the whole run, without it of all runs.
  static Result<PeakBytes> Read(Database& database, std::optional<std::int64_t> run_id,
                                const std::vector<CostProfile>& profiles);

  std::optional<std::int64_t> OfLine(std::string_view file, std::int64_t line) const {
    return In(lines_, {std::string(file), line});
  }
  std::optional<std::int64_t> OfGraph(std::int64_t graph_id) const { return In(graphs_, graph_id); }
  std::optional<std::int64_t> OfKernel(std::int64_t graph_id, std::int64_t kernel_id) const {
    return In(kernels_, {graph_id, kernel_id});
  }
  bool HasKernelsOf(std::int64_t graph_id) const {
    const auto first = kernels_.lower_bound({graph_id, INT64_MIN});
    return first != kernels_.end() && first->first.first == graph_id;
  }
  // All blocks of each kernel that computes the node.
  std::optional<std::int64_t> OfNode(std::int64_t graph_id, std::string_view node) const {
    return In(nodes_, {graph_id, std::string(node)});
  }

 private:
  template <class Key>
  using Bytes = std::map<Key, std::int64_t>;
  template <class Key>
  static std::optional<std::int64_t> In(const Bytes<Key>& bytes, const Key& key) {
    const auto found = bytes.find(key);
    return found == bytes.end() ? std::nullopt : std::optional(found->second);
  }
  struct OfRecording;  // the sums of one
  void Take(const OfRecording& recording);

  Bytes<std::pair<std::string, std::int64_t>> lines_;
  Bytes<std::int64_t> graphs_;
  Bytes<std::pair<std::int64_t, std::int64_t>> kernels_;
  Bytes<std::pair<std::int64_t, std::string>> nodes_;
};

}  // namespace tlparse
