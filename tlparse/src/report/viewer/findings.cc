#include "report/viewer/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "analysis/findings/context.h"
#include "analysis/ranks/ranks.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

// A page that names fifty causes names none.
constexpr std::size_t kMostRows = 500;

std::string CompileTitles(const Job& job, const std::vector<std::int32_t>& slots) {
  std::string text;
  constexpr std::size_t kMost = 4;
  for (std::size_t i = 0; i < slots.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : ", ") + job.slots()[static_cast<std::size_t>(slots[i])].Title();
  }
  if (slots.size() > kMost) text += fmt::format(" and {} more", slots.size() - kMost);
  return text;
}

// A compile of one of `ranks` in one of `slots`, to go and look at.
std::optional<std::int64_t> ExampleCompile(const Job& job, const std::vector<RankIndex>& ranks,
                                           const std::vector<std::int32_t>& slots) {
  for (const std::int32_t slot : slots) {
    for (const RankIndex rank : ranks) {
      if (const int index = job.CompileOf(rank, slot); index >= 0)
        return job.compiles()[static_cast<std::size_t>(index)].id;
    }
  }
  return std::nullopt;
}

void AddClasses(const RanksAnswer& answer, ChunkWriter& writer) {
  writer.BeginTable("rank_class", {"ordinal", "ranks_count", "median_compile_s"}, {"ranks"});
  for (std::size_t i = 0; i < answer.classes.size() && i < kMostRows; ++i) {
    writer.AddNumber(static_cast<std::int64_t>(i));
    writer.AddNumber(static_cast<std::int64_t>(answer.classes[i].ranks.size()));
    writer.AddReal(answer.classes[i].median_compile_s);
    writer.AddText(answer.job().FormatRanks(answer.classes[i].ranks));
  }
  writer.BeginTable("aspect", {"class_ordinal"}, {"area", "text"});
  for (std::size_t i = 0; i < answer.classes.size() && i < kMostRows; ++i) {
    for (const RankAspect& aspect : answer.classes[i].aspects) {
      writer.AddNumber(static_cast<std::int64_t>(i));
      writer.AddText(aspect.area);
      writer.AddText(aspect.text);
    }
  }
}

void AddCacheFindings(const RanksAnswer& answer, ChunkWriter& writer) {
  const Job& job = answer.job();
  writer.BeginTable("cache_finding",
                    {"is_note", "has_majority", "lookups", "differences", "explained", "compile_id",
                     "against_compile_id"},
                    {"cause", "title", "text", "ranks", "against", "state", "against_state",
                     "compiles", "node", "against_node", "source", "fallback"});
  for (std::size_t i = 0; i < answer.cache.findings.size() && i < kMostRows; ++i) {
    const CacheFinding& finding = answer.cache.findings[i];
    writer.AddNumber(IsNote(finding.cause.kind) ? 1 : 0);
    writer.AddNumber(finding.has_majority ? 1 : 0);
    writer.AddNumber(static_cast<std::int64_t>(finding.lookup_slots.size()));
    writer.AddNumber(static_cast<std::int64_t>(finding.cause.differences.size()));
    writer.AddNumber(static_cast<std::int64_t>(finding.cause.explained.size()));
    writer.AddNumber(ExampleCompile(job, finding.ranks, finding.compile_slots));
    writer.AddNumber(ExampleCompile(job, finding.against, finding.compile_slots));
    writer.AddText(Name(finding.cause.kind));
    writer.AddText(Title(finding.cause.kind));
    for (const std::string& text :
         {finding.cause.text, job.FormatRanks(finding.ranks), job.FormatRanks(finding.against),
          finding.state, finding.against_state, CompileTitles(job, finding.compile_slots),
          finding.node, finding.against_node, finding.source, finding.fallback}) {
      writer.AddText(text);
    }
  }
  writer.BeginTable("finding_compile", {"finding", "compile_id"}, {});
  for (std::size_t i = 0; i < answer.cache.findings.size() && i < kMostRows; ++i) {
    const CacheFinding& finding = answer.cache.findings[i];
    if (IsNote(finding.cause.kind)) continue;
    for (const std::int32_t slot : finding.compile_slots) {
      for (const RankIndex rank : finding.ranks) {
        const int index = job.CompileOf(rank, slot);
        if (index < 0) continue;
        writer.AddNumber(static_cast<std::int64_t>(i));
        writer.AddNumber(job.compiles()[static_cast<std::size_t>(index)].id);
      }
    }
  }
  writer.BeginTable("same_key", {"record_id", "other_record_id"},
                    {"key", "ranks", "other_ranks", "diff"});
  for (const SameKeyCode& same : answer.cache.same_key_codes) {
    writer.AddNumber(same.record_id);
    writer.AddNumber(same.other_record_id);
    for (const std::string& text :
         {same.key, job.FormatRanks(same.ranks), job.FormatRanks(same.other_ranks), same.diff}) {
      writer.AddText(text);
    }
  }
}

void AddSequences(const RanksAnswer& answer, ChunkWriter& writer) {
  const Job& job = answer.job();
  writer.BeginTable("collective_mismatch", {"ordinal", "against_ordinal"},
                    {"ranks", "kind", "graph", "item", "against_item", "reason"});
  for (const CollectiveClass& ranks : answer.collectives.classes) {
    for (std::size_t i = 0; i < ranks.mismatches.size() && i < kMostRows; ++i) {
      const CollectiveMismatch& mismatch = ranks.mismatches[i];
      writer.AddNumber(mismatch.ordinal);
      writer.AddNumber(mismatch.against_ordinal);
      writer.AddText(job.FormatRanks(ranks.ranks));
      writer.AddText(Name(mismatch.kind));
      writer.AddText(answer.cache.graphs.Title(job, mismatch.graph_slot));
      for (const std::string& text : {mismatch.item, mismatch.against_item, mismatch.reason})
        writer.AddText(text);
    }
  }
  writer.BeginTable("order_difference", {"position", "against_position", "is_moved"},
                    {"ranks", "ran", "against_ran"});
  const auto join = [](const std::vector<std::string>& items) {
    return fmt::format("{}", fmt::join(items, ", "));
  };
  for (const ExecutionClass& ranks : answer.execution.classes) {
    for (std::size_t i = 0; i < ranks.differences.size() && i < kMostRows; ++i) {
      const OrderDifference& difference = ranks.differences[i];
      writer.AddNumber(difference.position);
      writer.AddNumber(difference.against_position);
      writer.AddNumber(difference.is_moved ? 1 : 0);
      for (const std::string& text :
           {job.FormatRanks(ranks.ranks), join(difference.ran), join(difference.against_ran)}) {
        writer.AddText(text);
      }
    }
  }
}

void AddNotes(const RanksAnswer& answer, ChunkWriter& writer) {
  writer.BeginTable("note", {}, {"kind", "text"});
  const auto add = [&](std::string_view kind, const std::string& text) {
    writer.AddText(kind);
    writer.AddText(text);
  };
  // A rank that is a few percent slower than most tells nothing.
  if (answer.slowest && answer.slowest->compile_s > 1.05 * answer.slowest->median_s) {
    const SlowestRank& slowest = *answer.slowest;
    add("slowest",
        fmt::format("rank {} compiled for {:.1f} s, the median rank for {:.1f} s{}{}",
                    answer.job().participants()[static_cast<std::size_t>(slowest.rank)].name,
                    slowest.compile_s, slowest.median_s,
                    slowest.compile.empty() ? "" : ": most in " + slowest.compile,
                    slowest.reason.empty() ? "" : ", " + slowest.reason));
  }
  if (!answer.missing_ranks.empty()) {
    add("missing_ranks", fmt::format("no log of {} of {} ranks: {}", answer.missing_ranks.size(),
                                     answer.world_size, FormatRankRanges(answer.missing_ranks)));
  }
  for (const std::string& note : answer.notes) add("note", note);
}

// Compiles of different ranks that are the same piece of work.
void AddSlots(const Job* job, ChunkWriter& writer) {
  writer.BeginTable("slot", {"compile_id", "position"}, {"title"});
  if (job == nullptr) return;
  for (const JobCompile& compile : job->compiles()) {
    if (compile.slot < 0) continue;
    writer.AddNumber(compile.id);
    writer.AddNumber(job->SlotPosition(compile.slot));
    writer.AddText(job->slots()[static_cast<std::size_t>(compile.slot)].Title());
  }
}

}  // namespace

namespace {

void AddFinding(const Finding& finding, std::int64_t parent, std::int64_t& row,
                ChunkWriter& writer) {
  const std::int64_t own = row++;
  writer.AddNumber(parent);
  writer.AddNumber(finding.launch);
  writer.AddNumber(static_cast<std::int64_t>(finding.rank_count));
  writer.AddNumber(finding.since_us);
  writer.AddNumber(finding.place && finding.place->line > 0 ? std::optional(finding.place->line)
                                                            : std::nullopt);
  const FindingPlace place = finding.place.value_or(FindingPlace{});
  for (const std::string& text :
       {finding.id, std::string(Name(finding.kind)), std::string(Name(finding.severity)),
        finding.title, finding.detail, FormatRankRanges(finding.ranks),
        fmt::format("{}", fmt::join(finding.logs, ",")),
        fmt::format("{}", fmt::join(finding.compiles, ",")), place.file, place.code, finding.cause,
        finding.suggestion, finding.query, finding.function}) {
    writer.AddText(text);
  }
  for (const Finding& evidence : finding.evidence) AddFinding(evidence, own, row, writer);
}

Result<void> AddFindings(Database& database, const RanksAnswer* answer, ChunkWriter& writer) {
  writer.BeginTable("finding", {"parent", "launch", "rank_count", "since_us", "line"},
                    {"id", "kind", "severity", "title", "detail", "ranks", "logs", "compiles",
                     "file", "code", "cause", "try", "query", "function"});
  if (answer == nullptr) return {};
  FindingsOptions options;
  options.run = answer->job().run_name();
  ASSIGN_OR_RETURN(const std::vector<Finding> findings, FindFindings(database, options, *answer));
  std::int64_t row = 0;
  for (const Finding& finding : findings) AddFinding(finding, -1, row, writer);
  return {};
}

}  // namespace

Result<std::string> FindingsChunk(Database& database, std::int64_t run_id) {
  RanksOptions options;
  ASSIGN_OR_RETURN(options.run,
                   database.QueryText(fmt::format("SELECT name FROM run WHERE id = {}", run_id)));
  RanksAnswer answer;
  auto analyzed = AnalyzeRanks(database, options);
  if (!analyzed && analyzed.error().code != ErrorCode::kNotFound)
    return tl::unexpected<Error>(std::move(analyzed).error());
  if (analyzed) answer = std::move(*analyzed);
  ChunkWriter writer;
  AddClasses(answer, writer);
  AddCacheFindings(answer, writer);
  AddSequences(answer, writer);
  AddNotes(answer, writer);
  AddSlots(analyzed ? &answer.job() : nullptr, writer);
  RETURN_IF_ERROR(AddFindings(database, analyzed ? &answer : nullptr, writer));
  return writer.Finish();
}

}  // namespace tlparse
