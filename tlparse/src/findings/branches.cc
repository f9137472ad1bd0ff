// Which value a rank that differs was compiled for, where its guards show it: on which branch it
// sent the rank, or what the compiled code has taken from it.
#include "queries/findings/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "base/ascii.h"
#include "facts/cache/cause.h"
#include "facts/contents/graph_difference.h"
#include "facts/job/roles.h"
#include "facts/text/guard_text.h"
#include "facts/text/shorten.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// A guard of a line that branches.
struct BranchGuard {
  std::string key, text, code, file;
  std::int64_t line = 0;
  bool is_of_argument = false;  // it checks an argument of the function itself
};

bool IsBranch(std::string_view code) {
  return code.starts_with("if ") || code.starts_with("elif ") || code.starts_with("while ");
}

// By what they check and where.
Result<std::map<std::string, BranchGuard>> LoadBranchGuards(Database& database,
                                                            std::int64_t compile_id) {
  std::map<std::string, BranchGuard> guards;
  FOR_EACH_ROW(const GuardOfLine& row, Query<GuardOfLine>(database, {.compile_id = compile_id})) {
    if (!IsBranch(row.user_code)) continue;
    BranchGuard guard{GuardKey(row.normalized_expression),
                      {},
                      std::string(row.user_code),
                      std::string(row.user_file),
                      row.user_line.value_or(0)};
    const std::string subject(GuardSubject(guard.key));
    if (subject.empty()) continue;
    guard.is_of_argument = row.normalized_expression.starts_with("L['" + subject + "']");
    guard.text = ReadableSource(
        ReadableGuard(row.normalized_expression, guard.code, guard.file, guard.line).guard);
    guards.emplace(fmt::format("{}\n{}\n{}", subject, guard.line, guard.code), std::move(guard));
  }
  return guards;
}

// What a compile was made for, by the name of the value: "self.drop.p" → "0.1".
Result<std::map<std::string, std::string>> LoadValues(Database& database, std::int64_t compile_id) {
  constexpr std::string_view kEquals = " == ";
  std::map<std::string, std::string> values;
  FOR_EACH_ROW(const GuardOfValue& row, Query<GuardOfValue>(database, {.compile_id = compile_id})) {
    const std::string_view guard = row.normalized_expression;
    const std::string_view subject = GuardSubject(guard);
    if (subject.empty() || HasGeneratedNames(guard) || !guard.starts_with(subject) ||
        guard.find("<addr>") != std::string_view::npos ||
        !guard.substr(subject.size()).starts_with(kEquals))
      continue;
    values.emplace(ReadableSource(subject),
                   Shorten(guard.substr(subject.size() + kEquals.size()), 80));
  }
  // A tensor's dispatch keys tell that autocast was on.
  ASSIGN_OR_RETURN(
      const std::int64_t has_autocast,
      database.QueryInt(fmt::format("SELECT EXISTS (SELECT 1 FROM guard WHERE compile_id = {} "
                                    "AND normalized_expression GLOB 'check_tensor(*Autocast*')",
                                    compile_id)));
  ASSIGN_OR_RETURN(
      const std::int64_t has_tensor,
      database.QueryInt(fmt::format("SELECT EXISTS (SELECT 1 FROM guard WHERE compile_id = {} "
                                    "AND normalized_expression GLOB 'check_tensor(*')",
                                    compile_id)));
  if (has_tensor != 0) values.emplace("autocast", has_autocast != 0 ? "on" : "off");
  return values;
}

// "self.drop.p = 0.1" of the values that differ, on either side; at most two.
struct DifferingValues {
  std::string own, other;
};

DifferingValues Compare(const std::map<std::string, std::string>& own,
                        const std::map<std::string, std::string>& others) {
  constexpr std::size_t kMost = 2;
  DifferingValues differing;
  std::size_t count = 0;
  for (const auto& [name, value] : own) {
    const auto found = others.find(name);
    if (found == others.end() || found->second == value || ++count > kMost) continue;
    const std::string_view comma = count == 1 ? "" : ", ";
    differing.own += fmt::format("{}{} = {}", comma, name, value);
    differing.other += fmt::format("{}{} = {}", comma, name, found->second);
  }
  return differing;
}

// The first compile of a finding in a rank that does not differ, and those of ranks that may differ
// from it: of the first odd rank, or where no side is the odd one, of all others.
struct Sides {
  const JobCompile* other = nullptr;
  std::vector<const JobCompile*> odd;
};

Sides FindSides(const FindingContext& context, const Finding& finding) {
  constexpr std::size_t kMost = 16;
  Sides sides;
  const auto rank_of = [&](const JobCompile& compile) {
    return context.job.participants()[static_cast<std::size_t>(compile.participant)].rank;
  };
  const auto is_odd = [&](const JobCompile& compile) {
    const auto rank = rank_of(compile);
    return rank && (finding.ranks.empty() ||
                    std::binary_search(finding.ranks.begin(), finding.ranks.end(), *rank));
  };
  const std::vector<JobCompile>& all = context.job.compiles();
  const auto first = std::find_if(all.begin(), all.end(), [&](const JobCompile& compile) {
    return compile.slot >= 0 && is_odd(compile) &&
           context.job.string(compile.label_id) == finding.compiles.front();
  });
  if (first == all.end()) return sides;
  for (const JobCompile& compile : all) {
    if (sides.odd.size() >= kMost) break;
    if (!rank_of(compile) || compile.slot != first->slot) continue;
    if (is_odd(compile))
      sides.odd.push_back(&compile);
    else if (sides.other == nullptr)
      sides.other = &compile;
  }
  if (sides.odd.empty()) return sides;
  if (sides.other != nullptr) {
    sides.odd.erase(sides.odd.begin() + 1, sides.odd.end());
  } else {
    sides.other = sides.odd.front();
    sides.odd.erase(sides.odd.begin());
  }
  return sides;
}

// "Rank 1 compiled it for x > 0, rank 0 for x <= 0, which model.py:7 tests: if x > 0:"; empty: no
// guard shows it. Graphs that differ by an argument are as data has them: `finding` becomes a note.
Result<std::string> BranchSentence(const FindingContext& context, const JobCompile& odd,
                                   const JobCompile& other, Finding& finding) {
  ASSIGN_OR_RETURN(const auto own, LoadBranchGuards(context.database, odd.id));
  ASSIGN_OR_RETURN(const auto others, LoadBranchGuards(context.database, other.id));
  for (const auto& [subject, guard] : own) {
    const auto found = others.find(subject);
    if (found == others.end() || found->second.key == guard.key) continue;
    if (guard.is_of_argument && finding.kind == FindingKind::kGraphDivergence)
      finding.severity = FindingSeverity::kNote;
    return fmt::format("{} compiled it for {}, {} for {}, which {} tests: {}",
                       context.Who({odd.participant}), guard.text,
                       context.WhoInside({other.participant}), found->second.text,
                       PlaceText({guard.file, guard.line, {}}), guard.code);
  }
  return std::string();
}

// Whether each of the two was compiled for its rank as a value of one name.
bool AreOfRanks(const FindingContext& context, const JobCompile& odd, const JobCompile& other,
                const std::map<std::string, std::string>& own,
                const std::map<std::string, std::string>& others) {
  const auto is_rank = [&](const JobCompile& compile, const std::string& value) {
    const auto& one = context.job.participants()[static_cast<std::size_t>(compile.participant)];
    return one.rank && std::to_string(*one.rank) == value;
  };
  return std::any_of(own.begin(), own.end(), [&](const auto& value) {
    const auto found = others.find(value.first);
    return found != others.end() && is_rank(odd, value.second) && is_rank(other, found->second);
  });
}

// A constant that was computed from the rank makes `finding` a note.
Result<std::string> ValueSentence(const FindingContext& context, const JobCompile& odd,
                                  const JobCompile& other, Finding& finding) {
  ASSIGN_OR_RETURN(const auto own, LoadValues(context.database, odd.id));
  ASSIGN_OR_RETURN(const auto others, LoadValues(context.database, other.id));
  const DifferingValues values = Compare(own, others);
  if (values.own.empty()) return std::string();
  const bool is_of_rank = finding.is_of_numbers && AreOfRanks(context, odd, other, own, others);
  if (is_of_rank) finding.severity = FindingSeverity::kNote, finding.detail.clear();
  return fmt::format("{} compiled it for {}, {} for {}{}.", context.Who({odd.participant}),
                     values.own, context.WhoInside({other.participant}), values.other,
                     is_of_rank ? ": the rank is part of a computation" : "");
}

// Empty: one of them is not an integer.
std::vector<std::int64_t> IntegersIn(std::string_view text) {
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '.' && (IsDigit(text[i - 1]) || IsDigit(text[i + 1]))) return {};
  }
  std::vector<std::int64_t> numbers;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    const bool is_number = error == std::errc() && *at != '-';
    if (is_number) numbers.push_back(number);
    at = is_number ? end : at + 1;
  }
  return numbers;
}

// Which shard of a tensor ranks of the two graphs hold, if each rank has one of them and they are as
// the ranks of a mesh along one of its dimensions: [other, odd]; of two ranks these are the ranks.
std::optional<std::array<std::int64_t, 2>> FindShards(const FindingContext& context,
                                                      const JobCompile& odd,
                                                      const JobCompile& other) {
  std::map<std::int64_t, bool> is_odd;  // by rank
  for (const JobCompile& compile : context.job.compiles()) {
    if (compile.slot != odd.slot) continue;
    const auto rank =
        context.job.participants()[static_cast<std::size_t>(compile.participant)].rank;
    if (!rank || (compile.graph_content != odd.graph_content &&
                  compile.graph_content != other.graph_content))
      return std::nullopt;
    is_odd[*rank] = compile.graph_content == odd.graph_content;
  }
  const std::size_t count = is_odd.size();
  if (count != context.job.participants().size() || count % 2 != 0) return std::nullopt;
  if (count == 2) {
    const auto last = std::prev(is_odd.end());
    return last->second ? std::array{is_odd.begin()->first, last->first}
                        : std::array{last->first, is_odd.begin()->first};
  }
  const std::optional<std::size_t> slice = SliceOfMesh(is_odd);
  const auto odd_count =
      std::count_if(is_odd.begin(), is_odd.end(), [](const auto& one) { return one.second; });
  if (!slice || 2 * static_cast<std::size_t>(odd_count) != count) return std::nullopt;
  return *slice == 0 ? std::array<std::int64_t, 2>{1, 0} : std::array<std::int64_t, 2>{0, 1};
}

// Constants that are a multiple of the number of a shard, as where a shard of a table begins, make
// `finding` a note. Of more graphs than two see TellOwnThings.
Result<std::string> ShardSentence(const FindingContext& context, const JobCompile& odd,
                                  const JobCompile& other, Finding& finding) {
  if (!finding.is_of_numbers || !finding.ranks.empty() || odd.graph_content == 0 ||
      other.graph_content == 0)
    return std::string();
  const std::optional<std::array<std::int64_t, 2>> shards = FindShards(context, odd, other);
  if (!shards) return std::string();
  ASSIGN_OR_RETURN(
      const GraphDifference difference,
      CompareGraphs(context.database, other.graph_content, context.database, odd.graph_content));
  const std::vector<std::int64_t> of_other = IntegersIn(difference.a_node),
                                  of_odd = IntegersIn(difference.b_node);
  const auto [other_shard, odd_shard] = *shards;
  if (of_odd.size() != of_other.size() || of_odd == of_other) return std::string();
  for (std::size_t i = 0; i < of_odd.size(); ++i) {
    constexpr std::int64_t kMost = 1'000'000'000'000, kMostRanks = 1'000'000;
    if (of_odd[i] == of_other[i]) continue;
    if (std::max(of_odd[i], of_other[i]) > kMost || std::max(odd_shard, other_shard) > kMostRanks ||
        of_odd[i] * other_shard != of_other[i] * odd_shard ||
        (odd_shard != 0 && of_odd[i] % odd_shard != 0))
      return std::string();
  }
  finding.severity = FindingSeverity::kNote;
  finding.detail.clear();
  for (Finding& one : finding.evidence) {
    if (one.kind == FindingKind::kCodeDivergence) one.severity = FindingSeverity::kNote;
  }
  return std::string(
      finding.rank_count == 2
          ? "The number in which they first differ is a multiple of the rank, as where each rank "
            "holds a part of a tensor."
          : "The number in which they first differ is 0 on one half of the ranks, as where ranks "
            "hold the first and the second part of a tensor.");
}

}  // namespace

Result<void> SayBranches(FindingContext& context) {
  for (Finding& finding : context.findings) {
    if ((finding.kind != FindingKind::kGraphDivergence &&
         finding.kind != FindingKind::kCollectiveDivergence) ||
        (finding.ranks.empty() && finding.severity == FindingSeverity::kNote) ||
        finding.compiles.empty())
      continue;
    const Sides sides = FindSides(context, finding);
    if (sides.other == nullptr) continue;
    std::string sentence;
    for (const JobCompile* odd : sides.odd) {
      ASSIGN_OR_RETURN(sentence, BranchSentence(context, *odd, *sides.other, finding));
      if (sentence.empty() && finding.severity != FindingSeverity::kNote) {
        ASSIGN_OR_RETURN(sentence, ValueSentence(context, *odd, *sides.other, finding));
      }
      if (sentence.empty() && finding.severity != FindingSeverity::kNote) {
        ASSIGN_OR_RETURN(sentence, ShardSentence(context, *odd, *sides.other, finding));
      }
      if (!sentence.empty()) break;
    }
    if (sentence.empty()) continue;
    finding.detail += (finding.detail.empty()          ? ""
                       : finding.detail.ends_with('.') ? " "
                                                       : ". ") +
                      sentence;
  }
  return {};
}

}  // namespace tlparse
