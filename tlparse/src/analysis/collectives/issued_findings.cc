// What is wrong with the collectives that ranks issued.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/collectives/issued.h"
#include "analysis/diff/sequence_diff.h"
#include "analysis/ranks/job.h"
#include "runtime/collective_op.h"

namespace tlparse {
namespace {

using Positions = std::vector<std::size_t>;  // in IssuedGroup::ranks

// Tensors of these must be of one size on all ranks; others may legally differ.
bool NeedsEqualSizes(std::string_view plain_op) {
  return plain_op == "allreduce" || plain_op == "broadcast" || plain_op == "reduce";
}

std::int64_t Elements(std::string_view shapes) {
  double elements = 0;
  std::size_t at = 0;
  while ((at = shapes.find('[', at + 1)) != shapes.npos) {
    double product = 1;
    double number = 0;
    bool has_digit = false;
    for (++at; at < shapes.size(); ++at) {
      const char c = shapes[at];
      if (c >= '0' && c <= '9') {
        number = number * 10 + (c - '0');
        has_digit = true;
      } else {
        if (has_digit) product *= number;
        number = 0;
        has_digit = false;
        if (c == ']') break;
      }
    }
    elements += product;
  }
  return elements < 9e18 ? static_cast<std::int64_t>(elements) : -1;
}

// What must be alike on all ranks.
std::string Signature(const std::vector<const IssuedCollective*>& all) {
  std::string signature;
  for (const IssuedCollective* one : all) {
    signature += one->plain_op;
    if (NeedsEqualSizes(one->plain_op))
      signature +=
          fmt::format("({} {})", one->shapes.empty() ? -1 : Elements(one->shapes), one->dtype);
    signature += ';';
  }
  return signature;
}

// What tells one call of the program from another: op, line, function and reduction.
std::string Identity(const IssuedCollective& one) {
  return fmt::format("{}|{}|{}|{}", one.plain_op, one.Place(), one.function, one.reduce_op);
}

class GroupFinder {
 public:
  GroupFinder(Database& database, const IssuedJob& job, const IssuedGroup& group,
              const std::set<std::size_t>& blocked, std::vector<CollectiveFinding>& findings)
      : database_(database), job_(job), group_(group), blocked_(blocked), findings_(findings) {}

  Result<void> Run();

 private:
  std::string Ranks(const Positions& positions) const;
  void SetPlace(CollectiveFinding& finding, const IssuedCollective& one) const;
  std::int64_t First(std::size_t position) const {
    return group_.issued[position].front().sequence;
  }
  std::int64_t Last(std::size_t position) const { return group_.issued[position].back().sequence; }
  // The classes of ranks that hold `sequence`, by what `key` says; the reference first.
  template <typename Key>
  std::vector<Positions> Classes(std::int64_t sequence, const Key& key) const;
  bool FindOther(std::int64_t sequence);
  bool FindMispaired();
  Result<bool> FindNotReached();
  bool FindNeverIssued();
  bool FindLate(std::int64_t sequence);
  bool FindStuck();
  Result<std::string> CompileNote(std::size_t position, const IssuedCollective& waited) const;
  Positions Holders(std::int64_t sequence) const;
  std::string Wait(const Positions& waiting, std::int64_t sequence) const;

  Database& database_;
  const IssuedJob& job_;
  const IssuedGroup& group_;
  const std::set<std::size_t>& blocked_;
  std::vector<CollectiveFinding>& findings_;
};

std::string GroupFinder::Ranks(const Positions& positions) const {
  std::vector<std::int64_t> ranks;
  std::string names;
  for (const std::size_t position : positions) {
    const IssuingRank& rank = job_.ranks[group_.ranks[position]];
    if (rank.rank) {
      ranks.push_back(*rank.rank);
    } else {
      names += (names.empty() ? "" : ", ") + rank.name;
    }
  }
  std::string text;
  if (!ranks.empty())
    text = fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", FormatRankRanges(ranks));
  if (!names.empty()) text += (text.empty() ? "" : ", ") + names;
  return text;
}

void GroupFinder::SetPlace(CollectiveFinding& finding, const IssuedCollective& one) const {
  finding.group = group_.name;
  finding.sequence = one.sequence;
  finding.label = one.label;
  finding.function = one.function;
  finding.file = one.file;
  finding.line = one.line;
  finding.since_us = one.start_ns / 1000;
}

Positions GroupFinder::Holders(std::int64_t sequence) const {
  Positions holders;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (!group_.At(i, sequence).empty()) holders.push_back(i);
  }
  return holders;
}

template <typename Key>
std::vector<Positions> GroupFinder::Classes(std::int64_t sequence, const Key& key) const {
  std::map<std::string, Positions> by_key;
  for (const std::size_t position : Holders(sequence))
    by_key[key(group_.At(position, sequence))].push_back(position);
  std::vector<Positions> classes;
  for (auto& [text, positions] : by_key) classes.push_back(std::move(positions));
  // The largest is what the others are compared with; of equal ones that with the lowest rank.
  std::sort(classes.begin(), classes.end(), [](const Positions& a, const Positions& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return classes;
}

// Another op, size or type under one number.
bool GroupFinder::FindOther(std::int64_t sequence) {
  const std::vector<Positions> classes = Classes(sequence, Signature);
  if (classes.size() < 2) return false;
  const IssuedCollective& usual = *group_.At(classes[0].front(), sequence).front();
  const IssuedCollective& odd = *group_.At(classes[1].front(), sequence).front();
  CollectiveFinding finding;
  finding.kind = "collective_divergence";
  finding.severity = "error";
  const bool same_op = usual.plain_op == odd.plain_op;
  const auto name = [](const IssuedCollective& one) {
    return one.op.substr(one.op.rfind(':') + 1);
  };
  finding.title =
      same_op
          ? fmt::format("{}: {} #{} of {} has another size or type than on {}", Ranks(classes[1]),
                        name(odd), sequence, group_.Title(), Ranks(classes[0]))
          : fmt::format("{} issued {} where {} issued {}: #{} of {}", Ranks(classes[1]), name(odd),
                        Ranks(classes[0]), name(usual), sequence, group_.Title());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const IssuedCollective& one = *group_.At(classes[i].front(), sequence).front();
    finding.detail += fmt::format("{}{}: {}", i == 0 ? "" : "; ", Ranks(classes[i]), one.Title());
    if (i > 0)
      for (const std::size_t position : classes[i]) finding.ranks.push_back(group_.ranks[position]);
  }
  Positions waiting;
  for (const std::size_t position : Holders(sequence)) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (one.is_recorded && !one.is_done) waiting.push_back(position);
  }
  if (!waiting.empty())
    finding.detail +=
        fmt::format(". {} had not finished it when the recorder was dumped", Ranks(waiting));
  SetPlace(finding, odd);
  finding.cause = "the ranks of a group must issue the same collectives in the same order";
  finding.advice =
      fmt::format("compare {} with {}: look for a branch that depends on the rank or on data",
                  odd.Place().empty() ? "the call" : odd.Place(),
                  usual.Place().empty() ? "that of the others" : usual.Place());
  std::sort(finding.ranks.begin(), finding.ranks.end());
  findings_.push_back(std::move(finding));
  return true;
}

// The same op and size under one number, but not the same call of the program: the numbers of one
// rank are shifted, or the reduction is another one.
bool GroupFinder::FindMispaired() {
  std::size_t reference = 0;
  for (std::size_t i = 1; i < group_.ranks.size(); ++i) {
    if (group_.issued[i].size() > group_.issued[reference].size()) reference = i;
  }
  // A rank that most others agree with is the one to compare with.
  std::map<std::string, Positions> by_sequence;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    std::string all;
    for (const IssuedCollective& one : group_.issued[i])
      all += fmt::format("{}:{};", one.sequence, Identity(one));
    by_sequence[all].push_back(i);
  }
  std::size_t most = 1;
  for (const auto& [text, positions] : by_sequence) {
    if (positions.size() <= most) continue;
    most = positions.size();
    reference = positions.front();
  }
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (i == reference) continue;
    const std::vector<IssuedCollective>& a = group_.issued[reference];
    const std::vector<IssuedCollective>& b = group_.issued[i];
    const std::int64_t first = std::max(First(reference), First(i));
    const auto from = [first](const std::vector<IssuedCollective>& all) {
      return std::lower_bound(
          all.begin(), all.end(), first,
          [](const IssuedCollective& one, std::int64_t number) { return one.sequence < number; });
    };
    std::vector<const IssuedCollective*> ours, theirs;
    constexpr std::size_t kMost = 512;
    bool is_known = true;
    for (auto at = from(a); at != a.end(); ++at) theirs.push_back(&*at);
    for (auto at = from(b); at != b.end(); ++at) ours.push_back(&*at);
    std::size_t at = 0;
    while (at < ours.size() && at < theirs.size() && Identity(*ours[at]) == Identity(*theirs[at]))
      ++at;
    if (at >= ours.size() || at >= theirs.size() || ours[at]->sequence != theirs[at]->sequence)
      continue;
    const IssuedCollective& odd = *ours[at];
    const IssuedCollective& usual = *theirs[at];
    is_known = !odd.file.empty() && !usual.file.empty();
    const bool other_reduction =
        !odd.reduce_op.empty() && !usual.reduce_op.empty() && odd.reduce_op != usual.reduce_op;
    // Lines may legally differ by rank ("if rank == 0: broadcast(…) else: broadcast(…)"). Numbers
    // are shifted only if more calls agree at other numbers than at the same ones.
    const std::size_t count_a = std::min(theirs.size() - at, kMost),
                      count_b = std::min(ours.size() - at, kMost);
    std::size_t in_place = 0, in_order = 0;
    for (std::size_t k = 0; k < std::min(count_a, count_b); ++k)
      in_place += Identity(*theirs[at + k]) == Identity(*ours[at + k]);
    for (const EditStep& step : AlignSequences(count_a, count_b, [&](std::size_t x, std::size_t y) {
           return Identity(*theirs[at + x]) == Identity(*ours[at + y]);
         }))
      in_order += step.kind == EditStep::Kind::kKeep;
    const bool is_shifted = is_known && in_order > in_place;
    if (!other_reduction && !is_shifted) continue;
    CollectiveFinding finding;
    finding.kind = "collective_divergence";
    finding.severity = "error";
    finding.title = fmt::format("{} silently paired another call with that of {}: #{} of {}",
                                Ranks({i}), Ranks({reference}), odd.sequence, group_.Title());
    finding.detail = fmt::format(
        "{}: {}; {}: {}. Op and size agree, so the collective completes with wrong numbers",
        Ranks({i}), odd.Title(), Ranks({reference}), usual.Title());
    if (is_shifted)
      finding.detail += fmt::format("; {} of the next calls agree at other numbers, {} at the same",
                                    in_order, in_place);
    SetPlace(finding, odd);
    for (std::size_t other = 0; other < group_.ranks.size(); ++other) {
      const std::vector<const IssuedCollective*> same = group_.At(other, odd.sequence);
      if (other != reference && !same.empty() && Identity(*same.front()) == Identity(odd))
        finding.ranks.push_back(group_.ranks[other]);
    }
    finding.cause = other_reduction ? "the reduction differs"
                                    : "a collective was left out or added on one side";
    finding.advice = fmt::format("compare {} with {}", odd.Place(), usual.Place());
    findings_.push_back(std::move(finding));
    return true;
  }
  return false;
}

// What the log of a rank says about the compile that holds the collective that it did not reach.
Result<std::string> GroupFinder::CompileNote(std::size_t position,
                                             const IssuedCollective& waited) const {
  const IssuingRank& rank = job_.ranks[group_.ranks[position]];
  if (waited.graph_id == 0 || !rank.process_id) return std::string();
  ASSIGN_OR_RETURN(
      Statement compile,
      database_.Prepare(
          "SELECT c.label, c.start_time_us, c.start_time_us + c.duration_us FROM compile c "
          "JOIN graph g ON g.id = ?2 JOIN compile o ON o.id = g.compile_id "
          "WHERE c.process_id = ?1 AND c.function IS o.function AND c.line IS o.line "
          "ORDER BY c.id LIMIT 1"));
  compile.Bind(1, *rank.process_id);
  compile.Bind(2, waited.graph_id);
  ASSIGN_OR_RETURN(const bool exists, compile.Step());
  const std::string name = Ranks({position});
  if (!exists) return fmt::format("the log of {} holds no compile of {}", name, waited.function);
  const double begun_s =
      (static_cast<double>(compile.Int(1)) - static_cast<double>(waited.start_ns) / 1e3) / 1e6;
  if (compile.IsNull(1)) return std::string();
  if (begun_s > 0)
    return fmt::format("{} began to compile {} ({}) {:.1f} s after the others issued it", name,
                       waited.function, compile.Text(0), begun_s);
  if (compile.IsNull(2))
    return fmt::format("the compile of {} ({}) had not ended on {}", waited.function,
                       compile.Text(0), name);
  return fmt::format("{} had compiled {} ({})", name, waited.function, compile.Text(0));
}

// How long the waiting ranks had waited, as far as it is known.
std::string GroupFinder::Wait(const Positions& waiting, std::int64_t sequence) const {
  std::int64_t longest_ns = 0;
  for (const std::size_t position : waiting) {
    const std::int64_t start_ns = group_.At(position, sequence).front()->start_ns;
    longest_ns = std::max(longest_ns, job_.ranks[group_.ranks[position]].last_known_ns - start_ns);
  }
  return longest_ns < 1'000'000'000 ? std::string("how long they had waited is not in the dumps")
                                    : fmt::format("they had waited {:.1f} s at least",
                                                  static_cast<double>(longest_ns) / 1e9);
}

// Ranks whose dump ends before a collective that others are still inside of.
Result<bool> GroupFinder::FindNotReached() {
  Positions behind;
  std::int64_t sequence = 0;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const std::int64_t next = Last(i) + 1;
    if (!group_.issued[i].back().is_recorded || blocked_.count(group_.ranks[i]) > 0) continue;
    const Positions holders = Holders(next);
    const bool somebody_waits =
        std::any_of(holders.begin(), holders.end(), [&](std::size_t position) {
          const IssuedCollective& one = *group_.At(position, next).front();
          return one.is_recorded && !one.is_done;
        });
    if (!somebody_waits || (!behind.empty() && next > sequence)) continue;
    if (next < sequence) behind.clear();
    sequence = next;
    behind.push_back(i);
  }
  if (behind.empty()) return false;
  Positions waiting;
  for (const std::size_t position : Holders(sequence)) {
    if (!group_.At(position, sequence).front()->is_done) waiting.push_back(position);
  }
  const IssuedCollective& waited = *group_.At(waiting.front(), sequence).front();
  const IssuedCollective& last = group_.issued[behind.front()].back();
  CollectiveFinding finding;
  finding.kind = "collective_not_reached";
  finding.severity = "error";
  finding.title =
      fmt::format("{} had not reached {} #{} of {} when the recorder was dumped; {} {} in it",
                  Ranks(behind), waited.op.substr(waited.op.rfind(':') + 1), sequence,
                  group_.Title(), Ranks(waiting), waiting.size() == 1 ? "waits" : "wait");
  finding.detail = fmt::format("{}: {}, {}. The last of {} on this group: #{} {}", Ranks(waiting),
                               waited.Title(), Wait(waiting, sequence), Ranks({behind.front()}),
                               last.sequence, last.Title());
  ASSIGN_OR_RETURN(const std::string note, CompileNote(behind.front(), waited));
  if (!note.empty()) finding.detail += "; " + note;
  finding.cause = note;
  SetPlace(finding, waited);
  for (const std::size_t position : behind) finding.ranks.push_back(group_.ranks[position]);
  finding.advice = fmt::format("look at what {} was doing: its stack, its log after #{}",
                               Ranks(behind), last.sequence);
  findings_.push_back(std::move(finding));
  return true;
}

// Members of the group whose dumps are whole and hold nothing of it, while others wait in it.
bool GroupFinder::FindNeverIssued() {
  std::vector<std::size_t> absent;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < job_.ranks.size(); ++i) {
    const IssuingRank& rank = job_.ranks[i];
    const bool is_member = rank.rank && std::find(group_.members.begin(), group_.members.end(),
                                                  *rank.rank) != group_.members.end();
    if (!is_member || !rank.is_whole || blocked_.count(i) > 0 ||
        std::find(group_.ranks.begin(), group_.ranks.end(), i) != group_.ranks.end())
      continue;
    absent.push_back(i);
    numbers.push_back(*rank.rank);
  }
  Positions waiting;
  const IssuedCollective* waited = nullptr;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const IssuedCollective& first = group_.issued[i].front();
    if (!first.is_recorded || first.is_done) continue;
    waiting.push_back(i);
    if (waited == nullptr) waited = &first;
  }
  if (absent.empty() || waited == nullptr) return false;
  CollectiveFinding finding;
  finding.kind = "collective_not_reached";
  finding.severity = "error";
  finding.title =
      fmt::format("{} {} had issued nothing on {} when the recorder was dumped; {} {} in {} #{}",
                  numbers.size() == 1 ? "rank" : "ranks", FormatRankRanges(numbers), group_.Title(),
                  Ranks(waiting), waiting.size() == 1 ? "waits" : "wait",
                  waited->op.substr(waited->op.rfind(':') + 1), waited->sequence);
  finding.detail =
      fmt::format("{}: {}, {}", Ranks(waiting), waited->Title(), Wait(waiting, waited->sequence));
  SetPlace(finding, *waited);
  finding.ranks = absent;
  finding.advice = fmt::format("look at what {} {} was doing: its stack, its log",
                               numbers.size() == 1 ? "rank" : "ranks", FormatRankRanges(numbers));
  findings_.push_back(std::move(finding));
  return true;
}

// Ranks that came after the others' timeout: the collective had failed by then, whatever its state.
bool GroupFinder::FindLate(std::int64_t sequence) {
  const Positions holders = Holders(sequence);
  std::int64_t first_ns = INT64_MAX, timeout_ms = 0;
  std::size_t first = 0;
  for (const std::size_t position : holders) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (!one.is_recorded) return false;
    if (one.start_ns >= first_ns) continue;
    first_ns = one.start_ns;
    first = position;
    timeout_ms = one.timeout_ms;
    // It is known to have ended in time.
    if (one.end_ns > 0 && one.end_ns - one.start_ns < timeout_ms * 1'000'000) return false;
  }
  if (timeout_ms <= 0) return false;
  Positions late;
  std::int64_t latest_ns = 0;
  for (const std::size_t position : holders) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (one.start_ns - first_ns < timeout_ms * 1'000'000) continue;
    late.push_back(position);
    latest_ns = std::max(latest_ns, one.start_ns);
  }
  if (late.empty()) return false;
  const IssuedCollective& one = *group_.At(first, sequence).front();
  CollectiveFinding finding;
  finding.kind = "collective_not_reached";
  finding.severity = "error";
  const double gap_s = static_cast<double>(latest_ns - first_ns) / 1e9;
  finding.title =
      fmt::format("{} reached {} #{} of {} {:.1f} s after {}, beyond the timeout of {:g} s",
                  Ranks(late), one.op.substr(one.op.rfind(':') + 1), sequence, group_.Title(),
                  gap_s, Ranks({first}), static_cast<double>(timeout_ms) / 1e3);
  finding.detail = fmt::format("{}: {}; {}: {}", Ranks({first}), one.Title(), Ranks(late),
                               group_.At(late.front(), sequence).front()->Title());
  const std::vector<IssuedCollective>& own = group_.issued[late.front()];
  for (std::size_t i = own.size(); i > 0; --i) {
    if (own[i - 1].sequence >= sequence) continue;
    finding.detail +=
        fmt::format(". Before it {} issued #{} {}, {:.1f} s earlier", Ranks({late.front()}),
                    own[i - 1].sequence, own[i - 1].Title(),
                    static_cast<double>(group_.At(late.front(), sequence).front()->start_ns -
                                        own[i - 1].start_ns) /
                        1e9);
    break;
  }
  SetPlace(finding, one);
  for (const std::size_t position : late) finding.ranks.push_back(group_.ranks[position]);
  finding.advice =
      fmt::format("look at what {} did before it: its log between the two", Ranks(late));
  findings_.push_back(std::move(finding));
  return true;
}

// All ranks of the dumps are inside the same collective, and have been for long.
bool GroupFinder::FindStuck() {
  const std::int64_t sequence = Last(0);
  std::int64_t waited_ns = INT64_MAX;
  Positions all;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (Last(i) != sequence) return false;
    const IssuedCollective& one = *group_.At(i, sequence).front();
    if (!one.is_recorded || one.is_done) return false;
    waited_ns = std::min(waited_ns, job_.ranks[group_.ranks[i]].last_known_ns - one.start_ns);
    all.push_back(i);
  }
  constexpr std::int64_t kLong_ns = 10'000'000'000;
  if (waited_ns < kLong_ns) return false;
  const IssuedCollective& one = *group_.At(0, sequence).front();
  CollectiveFinding finding;
  finding.kind = "stuck";
  finding.severity = "error";
  std::vector<std::int64_t> absent;
  for (const std::int64_t member : group_.members) {
    if (std::none_of(group_.ranks.begin(), group_.ranks.end(),
                     [&](std::size_t i) { return job_.ranks[i].rank == member; }))
      absent.push_back(member);
  }
  finding.title =
      fmt::format("{} {} in {} #{} of {} for {:.1f} s at least", Ranks(all),
                  all.size() == 1 ? "waits" : "wait", one.op.substr(one.op.rfind(':') + 1),
                  sequence, group_.Title(), static_cast<double>(waited_ns) / 1e9);
  finding.detail = one.Title();
  if (!absent.empty())
    finding.detail += fmt::format(". No dump of rank {}, a member of the group, is among the input",
                                  FormatRankRanges(absent));
  SetPlace(finding, one);
  finding.advice =
      absent.empty()
          ? "all issued it: look at the network, the devices and the processes themselves"
          : "get the dumps of the other members";
  findings_.push_back(std::move(finding));
  return true;
}

Result<void> GroupFinder::Run() {
  if (group_.ranks.empty()) return {};
  if (FindNeverIssued()) return {};
  if (group_.ranks.size() == 1) {
    FindStuck();
    return {};
  }
  // From where all rings reach: what came before is unknown on some rank.
  std::set<std::int64_t> sequences;
  for (const std::vector<IssuedCollective>& issued : group_.issued) {
    for (const IssuedCollective& one : issued) sequences.insert(one.sequence);
  }
  for (const std::int64_t sequence : sequences) {
    if (FindOther(sequence)) return {};
    if (FindLate(sequence)) return {};
  }
  if (FindMispaired()) return {};
  ASSIGN_OR_RETURN(const bool is_found, FindNotReached());
  if (!is_found) FindStuck();
  return {};
}

// Ranks that are themselves inside a collective that not every rank of its group has reached: they
// lag in other groups because they wait.
std::set<std::size_t> WaitingRanks(const IssuedJob& job) {
  std::set<std::size_t> waiting;
  for (const IssuedGroup& group : job.groups) {
    std::int64_t reached = INT64_MAX;
    for (const std::vector<IssuedCollective>& issued : group.issued)
      reached = std::min(reached, issued.back().sequence);
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i]) {
        if (one.sequence > reached && one.is_recorded && !one.is_done)
          waiting.insert(group.ranks[i]);
      }
    }
  }
  return waiting;
}

// Collectives of two groups that two ranks issued in opposite orders, from one thread each.
void FindOrder(const IssuedJob& job, const std::set<std::size_t>& waiting,
               std::vector<CollectiveFinding>& findings) {
  struct At {
    std::size_t group;
    std::int64_t sequence;
    const IssuedCollective* one;
  };
  std::vector<std::vector<At>> order(job.ranks.size());
  for (std::size_t g = 0; g < job.groups.size(); ++g) {
    const IssuedGroup& group = job.groups[g];
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i])
        order[group.ranks[i]].push_back({g, one.sequence, &one});
    }
  }
  for (std::vector<At>& one : order) {
    std::stable_sort(one.begin(), one.end(),
                     [](const At& a, const At& b) { return a.one->start_ns < b.one->start_ns; });
  }
  // Neighbours in a group; those of two groups are the ones that may differ.
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i + 1 < group.ranks.size(); ++i)
      pairs.emplace(group.ranks[i], group.ranks[i + 1]);
  }
  for (const auto& pair : pairs) {
    const std::size_t a = pair.first, b = pair.second;
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> place;
    for (std::size_t i = 0; i < order[a].size(); ++i)
      place.try_emplace({order[a][i].group, order[a][i].sequence}, i);
    const At* before = nullptr;
    std::size_t before_place = 0;
    for (const At& now : order[b]) {
      const auto found = place.find({now.group, now.sequence});
      if (found == place.end()) continue;
      if (before != nullptr && before->group != now.group && found->second < before_place &&
          before->one->thread == now.one->thread &&
          order[a][found->second].one->thread == order[a][before_place].one->thread) {
        const bool is_nccl =
            BackendOf(now.one->op) == "nccl" || BackendOf(before->one->op) == "nccl";
        CollectiveFinding finding;
        finding.kind = "collective_divergence";
        const bool is_stuck = waiting.count(a) > 0 && waiting.count(b) > 0;
        finding.severity = is_stuck ? "error" : is_nccl ? "warning" : "note";
        const std::string first =
            fmt::format("#{} of {}", now.sequence, job.groups[now.group].Title());
        const std::string second =
            fmt::format("#{} of {}", before->sequence, job.groups[before->group].Title());
        finding.title = fmt::format("rank {} issued {} before {}, rank {} the other way round",
                                    job.ranks[a].name, first, second, job.ranks[b].name);
        finding.detail =
            fmt::format("rank {}: {}, then {}; rank {}: {}, then {}. {}", job.ranks[a].name,
                        order[a][found->second].one->Title(), order[a][before_place].one->Title(),
                        job.ranks[b].name, before->one->Title(), now.one->Title(),
                        is_nccl ? "With NCCL this can be a deadlock"
                                : "Legal with this backend; with NCCL it can be a deadlock");
        finding.ranks = {a, b};
        finding.group = job.groups[now.group].name;
        finding.sequence = now.sequence;
        finding.label = now.one->label;
        finding.function = now.one->function;
        finding.file = now.one->file;
        finding.line = now.one->line;
        finding.since_us = now.one->start_ns / 1000;
        finding.cause = "collectives of different groups are issued in different orders";
        finding.advice = "issue collectives of overlapping groups in one order on all ranks";
        findings.push_back(std::move(finding));
        return;  // one cause, said once
      }
      if (before == nullptr || found->second > before_place) {
        before = &now;
        before_place = found->second;
      }
    }
  }
}

}  // namespace

Result<std::vector<CollectiveFinding>> FindIssuedProblems(Database& database,
                                                          const IssuedJob& job) {
  std::vector<CollectiveFinding> findings;
  const std::set<std::size_t> waiting = WaitingRanks(job);
  for (const IssuedGroup& group : job.groups)
    RETURN_IF_ERROR(GroupFinder(database, job, group, waiting, findings).Run());
  FindOrder(job, waiting, findings);
  const auto urgency = [](const CollectiveFinding& one) {
    return one.severity == "error" ? 0 : one.severity == "warning" ? 1 : 2;
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const CollectiveFinding& a, const CollectiveFinding& b) {
                     return std::pair(urgency(a), a.since_us.value_or(0)) <
                            std::pair(urgency(b), b.since_us.value_or(0));
                   });
  return findings;
}

}  // namespace tlparse
