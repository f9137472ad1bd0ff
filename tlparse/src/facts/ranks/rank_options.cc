#include "facts/ranks/rank_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "facts/cache/component_index.h"
#include "facts/ranks/compile_options.h"
#include "queries/facts/ranks/rank_options.h"

namespace tlparse {
namespace {

constexpr std::string_view kSections[] = {"dynamo_config", "inductor_config", "functorch_config",
                                          "compiler_config"};
constexpr std::size_t kMostRanks = 2048, kMostContents = 64;

// The JSON string of a member of the metrics, with its quotes, as it stands there; empty: none.
std::string_view MemberText(std::string_view metrics, std::string_view name) {
  const std::string key = fmt::format("\"{}\": \"", name);
  const void* const found = memmem(metrics.data(), metrics.size(), key.data(), key.size());
  if (found == nullptr) return {};
  const std::size_t begin =
      static_cast<std::size_t>(static_cast<const char*>(found) - metrics.data()) + key.size() - 1;
  for (std::size_t i = begin + 1; i < metrics.size(); ++i) {
    if (metrics[i] == '\\') {
      ++i;
    } else if (metrics[i] == '"') {
      return metrics.substr(begin, i + 1 - begin);
    }
  }
  return {};
}

// Where files lie, how many processes help, and what PyTorch itself leaves out of its keys.
bool IsOfTheMachine(std::string_view name) {
  for (const std::string_view prefix :
       {"debug_dir", "log_file", "trace.", "worker_", "compile_threads", "cuda.cutlass_dir",
        "cutlass.cutlass_dir", "xpu.cutlass_dir", "repro_", "TYPE_CHECKING"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

Result<void> Read(Database& database, std::string_view section, std::string_view text,
                  std::map<std::string, std::string>& options) {
  FOR_EACH_ROW(const OptionOfCompile& row,
               KeptQuery<OptionOfCompile>(database, {.options = text})) {
    if (IsOfTheMachine(row.name)) continue;
    const std::string name = fmt::format("{}[{}]", section, row.name);
    options[name] = NeutralizeDesign(name, row.value).text;
  }
  return {};
}

Result<std::map<std::string, std::string>> ReadOptions(Database& database,
                                                       const RankOptions::Texts& texts) {
  std::map<std::string, std::string> options;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) RETURN_IF_ERROR(Read(database, kSections[i], texts[i], options));
  }
  return options;
}

// Of the metrics of a compile; nothing: it has none, or they name no options.
Result<std::optional<RankOptions::Texts>> ReadTexts(PreparedQuery<MetricsOfCompile>& metrics,
                                                    std::int64_t compile_id) {
  ASSIGN_OR_RETURN(const FirstRow<MetricsOfCompile> row,
                   First(metrics.Run({.compile_id = compile_id})));
  RankOptions::Texts texts;
  bool is_empty = true;
  for (std::size_t i = 0; row && i < texts.size(); ++i) {
    texts[i] = MemberText(row->metrics, kSections[i]);
    is_empty = is_empty && texts[i].empty();
  }
  return is_empty ? std::optional<RankOptions::Texts>() : std::move(texts);
}

// PyTorch logs a value that has no form in JSON, such as a function, as a text that says so.
std::optional<std::string> ValueOf(const std::string& value) {
  const bool is_there = value.find("Value is not JSON serializable") == std::string::npos;
  return is_there ? std::optional(value) : std::nullopt;
}

// The last compile that the most ranks finished; -1: none.
std::int32_t LastCommonSlot(const Job& job) {
  std::vector<std::size_t> counts(job.slots().size());
  for (const JobCompile& compile : job.compiles()) {
    if (compile.slot >= 0 && IsFinished(compile.status))
      ++counts[static_cast<std::size_t>(compile.slot)];
  }
  std::int32_t last = -1;
  std::size_t most = 1;
  for (const std::int32_t slot : job.slot_order()) {
    const std::size_t count = counts[static_cast<std::size_t>(slot)];
    if (count >= most) most = count, last = slot;
  }
  return last;
}

}  // namespace

std::string OptionValue(const std::optional<std::string>& value) {
  return value.value_or("a value that the log does not have");
}

Result<RankOptions> RankOptions::Load(Database& database, const Job& job) {
  RankOptions result;
  const std::size_t count = job.participants().size();
  if (count < 2 || count > kMostRanks) return result;
  for (const std::vector<std::int32_t>& slots :
       {job.slot_order(), std::vector<std::int32_t>{LastCommonSlot(job)}}) {
    ASSIGN_OR_RETURN(const bool is_known, result.AddSample(database, job, slots));
    if (!is_known) return RankOptions();
  }
  return result;
}

// Of each rank the first compile of `slots` whose metrics are in its log. Options may be set for
// single compiles, so ranks are compared in one: that of most ranks. False: too many have options of
// their own.
Result<bool> RankOptions::AddSample(Database& database, const Job& job,
                                    const std::vector<std::int32_t>& slots) {
  ASSIGN_OR_RETURN(PreparedQuery<MetricsOfCompile> metrics,
                   PreparedQuery<MetricsOfCompile>::Make(database));
  const std::size_t count = job.participants().size();
  Sample sample{-1, std::vector<std::int64_t>(count, -1), -1};
  std::vector<std::int32_t> slot_of(count, -1);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::int32_t slot : slots) {
      const std::int32_t index = slot < 0 ? -1 : job.CompileOf(static_cast<RankIndex>(i), slot);
      if (index < 0) continue;
      ASSIGN_OR_RETURN(std::optional<Texts> texts,
                       ReadTexts(metrics, job.compiles()[static_cast<std::size_t>(index)].id));
      if (!texts) continue;
      SequenceHash hash;
      for (const std::string& text : *texts) hash.Add(text);
      const auto [found, is_new] = known_.try_emplace(hash.Digest());
      if (is_new) {
        if (known_.size() > kMostContents) return false;
        ASSIGN_OR_RETURN(found->second, AddContent(database, std::move(*texts)));
      }
      sample.content_of[i] = found->second;
      slot_of[i] = slot;
      break;
    }
  }
  std::map<std::int32_t, std::size_t> ranks_of_slot;
  for (const std::int32_t slot : slot_of) {
    if (slot >= 0 && (++ranks_of_slot[slot] > ranks_of_slot[sample.slot] || sample.slot < 0))
      sample.slot = slot;
  }
  std::map<std::int64_t, std::size_t> counts;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& content = sample.content_of[i];
    if (slot_of[i] != sample.slot) content = -1;
    if (content >= 0 && (++counts[content] > counts[sample.usual] || sample.usual < 0))
      sample.usual = content;
  }
  samples_.push_back(std::move(sample));
  return true;
}

// Texts may differ in what is no difference. While there is one text, nothing is to be compared, and
// it is not read.
Result<std::int64_t> RankOptions::AddContent(Database& database, Texts texts) {
  if (contents_.empty()) {
    contents_.emplace_back();
    unread_ = std::move(texts);
    return 0;
  }
  if (unread_) {
    ASSIGN_OR_RETURN(contents_.front(), ReadOptions(database, *unread_));
    unread_.reset();
  }
  ASSIGN_OR_RETURN(Options options, ReadOptions(database, texts));
  const auto same = std::find(contents_.begin(), contents_.end(), options);
  const std::int64_t index = same - contents_.begin();
  if (same == contents_.end()) contents_.push_back(std::move(options));
  return index;
}

std::int64_t RankOptions::ClassOf(RankIndex rank) const {
  std::int64_t result = 0;
  for (const Sample& sample : samples_) {
    const std::int64_t own = sample.content_of[static_cast<std::size_t>(rank)];
    result =
        result * static_cast<std::int64_t>(kMostContents + 2) + (own < 0 ? sample.usual : own) + 1;
  }
  return result;
}

std::vector<RankOptions::Change> RankOptions::Compare(RankIndex reference, RankIndex rank) const {
  std::vector<Change> changes;
  for (const Sample& sample : samples_) {
    const std::int64_t a = sample.content_of[static_cast<std::size_t>(reference)],
                       b = sample.content_of[static_cast<std::size_t>(rank)];
    if (a < 0 || b < 0 || a == b) continue;
    const Options& new_ones = contents_[static_cast<std::size_t>(b)];
    for (const auto& [name, value] : contents_[static_cast<std::size_t>(a)]) {
      const auto other = new_ones.find(name);
      const bool is_told =
          std::any_of(changes.begin(), changes.end(),
                      [&wanted = name](const Change& one) { return one.name == wanted; });
      if (!is_told && other != new_ones.end() && other->second != value)
        changes.push_back({name, ValueOf(value), ValueOf(other->second), sample.slot});
    }
  }
  return changes;
}

Result<std::map<std::string, std::string>> OptionsOfCompile(Database& database,
                                                            std::int64_t compile_id) {
  ASSIGN_OR_RETURN(PreparedQuery<MetricsOfCompile> metrics,
                   PreparedQuery<MetricsOfCompile>::Make(database));
  ASSIGN_OR_RETURN(const std::optional<RankOptions::Texts> texts, ReadTexts(metrics, compile_id));
  if (!texts) return std::map<std::string, std::string>();
  ASSIGN_OR_RETURN(auto options, ReadOptions(database, *texts));
  for (auto& [name, value] : options) value = OptionValue(ValueOf(value));
  return options;
}

}  // namespace tlparse
