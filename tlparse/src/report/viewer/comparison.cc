#include "report/viewer/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "facts/diff/diff_runs.h"
#include "queries/report/viewer/comparison.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

// Of the lists of one compile, and of measured kernels, lines and ops.
constexpr std::size_t kMostTexts = 40, kMostMeasured = 200;

// As the page writes times, viewer/src/lib/format.ts: one time has one form on it.
std::string PageDuration(std::int64_t us) {
  if (us >= 59'950'000) {
    const std::int64_t seconds = (us + 500'000) / 1'000'000;
    return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60)
                             : fmt::format("{} min {} s", seconds / 60, seconds % 60);
  }
  if (us < 1000) return us == 0 ? "0 s" : fmt::format("{} µs", us);
  const double value = static_cast<double>(us) / (us >= 999'500 ? 1e6 : 1e3);
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, digits, us >= 999'500 ? "s" : "ms");
}

// What is to be known first: who is slower, and whether they did the same.
std::string VerdictOf(const DiffAnswer& answer, const std::string& a, const std::string& b) {
  if (!answer.HasLogs()) return "Only the profiles are compared: not both sides have a log.";
  std::string text;
  const auto total = std::find_if(answer.phases.begin(), answer.phases.end(),
                                  [](const PhaseChange& one) { return one.phase == "total"; });
  if (answer.timed_count > 0 && total != answer.phases.end() && total->a_us && total->b_us) {
    const std::int64_t by_us = *total->b_us - *total->a_us;
    // What varies from run to run is no change.
    const bool is_alike = std::abs(by_us) * 20 < std::max(*total->a_us, *total->b_us);
    text = is_alike ? fmt::format("Both compiled for about {}", PageDuration(*total->b_us))
                    : fmt::format("{} compiled for {}, {} for {}", b, PageDuration(*total->b_us), a,
                                  PageDuration(*total->a_us));
    text += fmt::format(" ({} that both finished). ",
                        Count(static_cast<std::size_t>(answer.timed_count), "compile"));
  }
  const auto differing = static_cast<std::size_t>(
      std::count_if(answer.compiles.begin(), answer.compiles.end(),
                    [](const CompileChange& one) { return !one.IsEqual(); }));
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (answer.IsEqual()) {
    return text + (answer.compiles.empty() ? "Neither side has a compile."
                                           : "They are equal in everything else.");
  }
  std::vector<std::string> parts;
  if (differing > 0)
    parts.push_back(fmt::format("{} of {} differ{}", differing,
                                Count(answer.compiles.size(), "compile"), VerbS(differing)));
  if (!answer.only_a.empty())
    parts.push_back(Count(answer.only_a.size(), "compile") + " only in " + a);
  if (!answer.only_b.empty())
    parts.push_back(Count(answer.only_b.size(), "compile") + " only in " + b);
  if (answer.HasOtherTorch()) parts.emplace_back("the versions of PyTorch differ");
  return parts.empty() ? text + "The versions differ."
                       : text + fmt::format("{}.", fmt::join(parts, ", "));
}

void AddOptional(ChunkWriter& writer, const std::string& text) {
  writer.AddText(OptionalText(text));
}

// The rows of one table after the other, as the writer wants them.
class ComparisonTables {
 public:
  struct One {
    const NamedSide* a = nullptr;
    const NamedSide* b = nullptr;
    const RunComparison* all = nullptr;
    const RankComparison* comparison = nullptr;
  };
  explicit ComparisonTables(std::vector<One> all) : all_(std::move(all)) {}

  Result<std::string> Finish() {
    AddComparisons();
    RETURN_IF_ERROR(AddPhases());
    AddCompiles();
    AddChanges();
    AddCaches();
    AddOnly();
    AddMeasured();
    return writer_.Finish();
  }

 private:
  void AddComparisons() {
    writer_.BeginTable("comparison",
                       {"pairs", "is_equal", "has_measured", "is_per_step", "left_out"},
                       {"a", "b", "a_name", "b_name", "a_ranks", "b_ranks", "only_a_ranks",
                        "only_b_ranks", "a_torch", "b_torch", "a_python", "b_python", "verdict"});
    for (const auto& [a, b, all, one] : all_) {
      const DiffAnswer& diff = one->diff;
      writer_.AddNumber(static_cast<std::int64_t>(one->count));
      writer_.AddNumber(std::int64_t{diff.IsEqual()});
      writer_.AddNumber(std::int64_t{diff.measured.has_value()});
      writer_.AddNumber(std::int64_t{diff.measured && diff.measured->is_per_step});
      writer_.AddNumber(static_cast<std::int64_t>(all->left_out));
      writer_.AddText(a->key);
      writer_.AddText(b->key);
      writer_.AddText(a->name);
      writer_.AddText(b->name);
      AddOptional(writer_, a->ranks.empty() ? one->a_ranks : a->ranks);
      AddOptional(writer_, b->ranks.empty() ? one->b_ranks : b->ranks);
      AddOptional(writer_, all->only_a_ranks);
      AddOptional(writer_, all->only_b_ranks);
      AddOptional(writer_, diff.a_torch_version);
      AddOptional(writer_, diff.b_torch_version);
      AddOptional(writer_, diff.a_python_version);
      AddOptional(writer_, diff.b_python_version);
      writer_.AddText(VerdictOf(diff, a->name, b->name));
    }
  }

  // Of the compiles whose times are compared; the phases of the table `time`, by their numbers.
  Result<void> AddPhases() {
    writer_.BeginTable("phase", {"compile", "phase", "a_us", "b_us"}, {});
    std::int64_t compile = 0;
    for (const One& one : all_) {
      for (const CompileChange& change : one.comparison->diff.compiles) {
        if (TotalOf(change)) {
          ASSIGN_OR_RETURN(const PhaseTimes a, PhasesOf(*one.a->side.database, change.a_id));
          ASSIGN_OR_RETURN(const PhaseTimes b, PhasesOf(*one.b->side.database, change.b_id));
          for (std::size_t phase = 0; phase < a.size(); ++phase) {
            writer_.AddNumber(compile);
            writer_.AddNumber(static_cast<std::int64_t>(phase) + 1);
            writer_.AddNumber(a[phase]);
            writer_.AddNumber(b[phase]);
          }
        }
        ++compile;
      }
    }
    return {};
  }

  using PhaseTimes = std::array<std::int64_t, 5>;
  static Result<PhaseTimes> PhasesOf(Database& database, std::int64_t compile_id) {
    ASSIGN_OR_RETURN(const FirstRow<CountersOfCompile> row,
                     First(Query<CountersOfCompile>(database, {.compile_id = compile_id})));
    const std::int64_t code_us = std::min(row->code_gen_us, row->inductor_us);
    const auto apart = [](std::int64_t outer, std::int64_t inner) {
      return std::max<std::int64_t>(0, outer - inner);
    };
    return PhaseTimes{apart(row->dynamo_us, row->aot_autograd_us),
                      apart(row->aot_autograd_us, row->inductor_us), row->inductor_us - code_us,
                      code_us, row->backward_us};
  }

  // Both times, if the compile counts in the sums.
  static std::optional<std::pair<std::int64_t, std::int64_t>> TotalOf(const CompileChange& change) {
    for (const PhaseChange& one : change.phases) {
      if (one.phase == "total" && change.IsFinished() && one.a_us && one.b_us)
        return std::pair(*one.a_us, *one.b_us);
    }
    return std::nullopt;
  }

  void AddCompiles() {
    writer_.BeginTable(
        "compile",
        {"comparison", "a_id", "b_id", "is_equal", "has_same_graph", "has_other_comments_only",
         "a_guards", "b_guards", "a_kernels", "b_kernels", "alike_guards", "a_us", "b_us"},
        {"a_label", "b_label", "function", "a_file", "b_file", "a_status", "b_status",
         "graph_difference"});
    for (std::size_t at = 0; at < all_.size(); ++at) {
      for (const CompileChange& one : all_[at].comparison->diff.compiles) {
        for (const std::int64_t number :
             {static_cast<std::int64_t>(at), one.a_id, one.b_id, std::int64_t{one.IsEqual()},
              std::int64_t{one.has_same_graph}, std::int64_t{one.has_other_comments_only},
              one.a_guard_count, one.b_guard_count, one.a_kernel_count, one.b_kernel_count,
              one.alike_guard_count})
          writer_.AddNumber(number);
        const auto total = TotalOf(one);
        writer_.AddNumber(total ? std::optional(total->first) : std::nullopt);
        writer_.AddNumber(total ? std::optional(total->second) : std::nullopt);
        writer_.AddText(one.a_label);
        writer_.AddText(one.b_label);
        writer_.AddText(one.function);
        AddOptional(writer_, one.a_file);
        AddOptional(writer_, one.b_file);
        writer_.AddText(Name(one.a_status));
        writer_.AddText(Name(one.b_status));
        AddOptional(writer_, one.graph_difference);
      }
    }
  }

  void AddChanges() {
    writer_.BeginTable("change", {"compile", "count", "a_record_id", "b_record_id"},
                       {"what", "how", "text"});
    std::int64_t compile = 0;
    for (const One& one : all_) {
      for (const CompileChange& change : one.comparison->diff.compiles) {
        AddTexts(compile, "recompile", "new", change.new_recompiles);
        AddTexts(compile, "recompile", "gone", change.vanished_recompiles);
        AddTexts(compile, "graph break", "new", change.new_graph_breaks);
        AddTexts(compile, "graph break", "gone", change.vanished_graph_breaks);
        AddTexts(compile, "graph break", "changed", change.changed_graph_breaks);
        AddTexts(compile, "guard", "new", change.new_guards);
        AddTexts(compile, "guard", "gone", change.vanished_guards);
        AddTexts(compile, "guard", "changed", change.changed_guards);
        AddTexts(compile, "kernel", "new", change.new_kernels);
        AddTexts(compile, "kernel", "gone", change.vanished_kernels);
        for (const CodeChange& code : change.codes)
          AddChange(compile, 1, "code", "changed", code.title, &code);
        ++compile;
      }
    }
  }

  void AddTexts(std::int64_t compile, std::string_view what, std::string_view how,
                const std::vector<std::string>& texts) {
    std::vector<std::pair<std::string_view, std::int64_t>> counted;
    std::int64_t others = 0;
    for (const std::string& text : texts) {
      const auto same = std::find_if(counted.begin(), counted.end(),
                                     [&](const auto& one) { return one.first == text; });
      if (same != counted.end()) {
        ++same->second;
      } else if (counted.size() < kMostTexts) {
        counted.emplace_back(text, 1);
      } else {
        ++others;
      }
    }
    for (const auto& [text, count] : counted) AddChange(compile, count, what, how, text, nullptr);
    if (others > 0) AddChange(compile, others, what, how, {}, nullptr);
  }

  void AddChange(std::int64_t compile, std::int64_t count, std::string_view what,
                 std::string_view how, std::string_view text, const CodeChange* code) {
    writer_.AddNumber(compile);
    writer_.AddNumber(count);
    writer_.AddNumber(code ? std::optional(code->a_record_id) : std::nullopt);
    writer_.AddNumber(code ? std::optional(code->b_record_id) : std::nullopt);
    writer_.AddText(what);
    writer_.AddText(how);
    writer_.AddText(OptionalText(text.substr(0, 600)));
  }

  // A row for each cause; of a lookup without one, one row.
  void AddCaches() {
    writer_.BeginTable("cache", {"compile", "has_same_key", "explained"},
                       {"lookup", "a_state", "b_state", "cause", "text", "fallback"});
    std::int64_t compile = 0;
    for (const One& one : all_) {
      for (const CompileChange& change : one.comparison->diff.compiles) {
        for (const CacheChange& cache : change.caches) {
          const std::size_t rows = std::max<std::size_t>(1, cache.causes.size());
          for (std::size_t i = 0; i < rows; ++i)
            AddCache(compile, cache, i < cache.causes.size() ? &cache.causes[i] : nullptr);
        }
        ++compile;
      }
    }
  }

  void AddCache(std::int64_t compile, const CacheChange& cache, const Cause* cause) {
    writer_.AddNumber(compile);
    writer_.AddNumber(std::int64_t{cache.has_same_key});
    writer_.AddNumber(cause ? static_cast<std::int64_t>(cause->explained.size()) : 0);
    writer_.AddText(cache.title);
    AddOptional(writer_, cache.a_state);
    AddOptional(writer_, cache.b_state);
    writer_.AddText(cause ? std::optional(Title(cause->kind)) : std::nullopt);
    writer_.AddText(cause ? OptionalText(std::string_view(cause->text).substr(0, 1000))
                          : std::nullopt);
    AddOptional(writer_, cache.fallback);
  }

  void AddOnly() {
    writer_.BeginTable("only", {"comparison", "is_b", "id", "duration_us"},
                       {"label", "function", "status", "reason"});
    for (std::size_t at = 0; at < all_.size(); ++at) {
      const DiffAnswer& diff = all_[at].comparison->diff;
      for (const bool is_b : {false, true}) {
        for (const UnmatchedCompile& one : is_b ? diff.only_b : diff.only_a) {
          writer_.AddNumber(static_cast<std::int64_t>(at));
          writer_.AddNumber(std::int64_t{is_b});
          writer_.AddNumber(one.id);
          writer_.AddNumber(one.duration_us > 0 ? std::optional(one.duration_us) : std::nullopt);
          writer_.AddText(one.label);
          writer_.AddText(one.function);
          writer_.AddText(Name(one.status));
          writer_.AddText(one.recompile_reasons.empty()
                              ? std::nullopt
                              : OptionalText(one.recompile_reasons.front()));
        }
      }
    }
  }

  void AddMeasured() {
    writer_.BeginTable("measured", {"comparison", "a_us", "b_us", "a_calls", "b_calls", "line"},
                       {"kind", "name", "file", "label", "direction"});
    for (std::size_t at = 0; at < all_.size(); ++at) {
      const auto& measured = all_[at].comparison->diff.measured;
      if (!measured) continue;
      std::vector<const MeasuredChange*> changes;
      for (const auto* list : {&measured->changes, &measured->only_a, &measured->only_b})
        for (const MeasuredChange& one : *list) changes.push_back(&one);
      const auto by = [](const MeasuredChange* one) { return std::abs(one->b_us - one->a_us); };
      std::stable_sort(changes.begin(), changes.end(),
                       [&](const auto* x, const auto* y) { return by(x) > by(y); });
      changes.resize(std::min(changes.size(), kMostMeasured));
      for (const MeasuredChange* one : changes) AddMeasuredChange(at, *one);
    }
  }

  void AddMeasuredChange(std::size_t at, const MeasuredChange& one) {
    writer_.AddNumber(static_cast<std::int64_t>(at));
    writer_.AddReal(one.a_us);
    writer_.AddReal(one.b_us);
    writer_.AddNumber(one.a_calls);
    writer_.AddNumber(one.b_calls);
    writer_.AddNumber(one.kind == MeasuredKind::kLine ? std::optional(one.line) : std::nullopt);
    writer_.AddText(one.kind == MeasuredKind::kLine     ? "line"
                    : one.kind == MeasuredKind::kKernel ? "kernel"
                                                        : "op");
    writer_.AddText(std::string_view(one.name).substr(0, 300));
    AddOptional(writer_, one.file);
    AddOptional(writer_, one.label);
    AddOptional(writer_, one.direction);
  }

  const std::vector<One> all_;
  ChunkWriter writer_;
};

}  // namespace

Result<std::string> DiffChunk(const ComparedRun& run, std::string_view pair) {
  ASSIGN_OR_RETURN(const SidePairs pairs, FindPairs(run, pair));
  const bool is_asked = pair.find('-') != std::string_view::npos;
  std::vector<std::pair<std::size_t, RunComparison>> answers;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto answer = AnalyzeRunDiff(pairs[i].first.side, pairs[i].second.side, {});
    // Of those that nobody asked for, what cannot be compared is left out.
    if (!answer && !is_asked && answer.error().code == ErrorCode::kNotFound) continue;
    if (!answer) return tl::unexpected<Error>(std::move(answer).error());
    answers.emplace_back(i, std::move(*answer));
  }
  std::vector<ComparisonTables::One> all;
  for (const auto& [i, answer] : answers) {
    for (const RankComparison& one : answer.comparisons)
      all.push_back({&pairs[i].first, &pairs[i].second, &answer, &one});
  }
  return ComparisonTables(std::move(all)).Finish();
}

}  // namespace tlparse
