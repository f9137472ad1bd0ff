// The fields of issued collectives in the answer of `tlparse collectives`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/collectives_issued.h"
#include "cli/collectives_messages.h"
#include "cli/rank_fields.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {

using InIssued = WithFindings<CollectiveAnswer>;

// Of indices into IssuedJob::ranks.
template <class Owner>
struct Issuing {
  std::vector<std::size_t> Owner::*member;
  RankList operator()(const Owner& owner, const InIssued& in) const {
    return {(owner.*member).size(), RanksOf(in.answer.issued, owner.*member)};
  }
};
template <class Owner>
Issuing(std::vector<std::size_t> Owner::*) -> Issuing<Owner>;

// The name of the rank of an index.
inline constexpr auto kIssuingRank = [](const auto& of, const InIssued& in) {
  return in.answer.issued.ranks[of.rank].name;
};

template <>
struct FieldsOf<IssuedLine> {
  using Of = IssuedLine;
  static constexpr FieldList list{
      Field{"sequence_number", &Of::sequence},
      Field{"issued", &Of::by_title,
            "one element for each thing that ranks issued under this number; several: they differ"},
      Field{"done", Issuing{&Of::done}},
      Field{"timed_out", Issuing{&Of::timed_out},
            "ranks whose timeout had passed when the last rank came"},
      Field{"ended", Issuing{&Of::ended},
            "ranks whose call returned, in or after one that timed out: the dump does not tell "
            "whether it completed"},
      Field{"waiting", Issuing{&Of::waiting},
            "ranks that had not ended it; with a backend of devices, that had started it"},
      Field{"not_started", Issuing{&Of::not_started},
            "ranks that had enqueued it, whose device had not started it"},
      Field{"enqueued", Issuing{&Of::enqueued},
            "ranks that had enqueued it and not ended it, whose dump does not record when a device "
            "starts a collective"},
      Field{"end_unknown", Issuing{&Of::issued},
            "ranks that issued it, whose file does not show whether it ended there"},
      Field{"not_reached", Issuing{&Of::missing}},
      Field{"unknown", Issuing{&Of::unknown},
            "ranks whose file does not show whether they issued it: it begins later, is cut, or is "
            "a profile, which covers a part of the job only; or there is no file"},
      Field{
          "is_alike", &IsAlike,
          "every rank issued the same, and none waits in it or timed out; the text shows the last "
          "of these, and the one that was waited for longest"},
      Field{"graph", [](const Of& of) { return OrNull{&IssuedCollective::label}(*of.usual); },
            "compile label of the graph that issued it; null: outside compiled graphs, or not "
            "joined"},
      Field{"file", [](const Of& of) { return OrNull{&IssuedCollective::file}(*of.usual); }},
      Field{"line", [](const Of& of) { return Positive{&IssuedCollective::line}(*of.usual); }},
      Field{"wait_us",
            [](const Of& of) {
              return of.HasWait() ? std::optional(static_cast<double>(of.WaitNs()) / 1e3)
                                  : std::nullopt;
            },
            "of the first rank: until the last one came to it, or until its timeout; null: not "
            "known, an earlier collective of the group had timed out, or a rank had ended it "
            "before the last one came: their clocks differ"},
      Field{"is_timed_out", &Of::IsTimedOut, "the last rank came after the first one's timeout"},
      Field{"last_rank",
            [](const Of& of, const InIssued& in) {
              const std::string& name = in.answer.issued.ranks[of.last_rank].name;
              const bool is_known = of.missing.empty() && of.unknown.empty() &&
                                    of.last_ns > of.first_ns && !of.has_other_clocks &&
                                    !name.empty();
              return is_known ? std::optional(name) : std::nullopt;
            },
            "null: not known, ranks are missing or unknown; or all came at once"},
  };
};

template <>
struct FieldsOf<decltype(IssuedLine::by_title)::value_type> {
  using Of = decltype(IssuedLine::by_title)::value_type;
  static constexpr FieldList list{
      Field{"item", &Of::first},
      Field{"ranks", Issuing{&Of::second}},
  };
};

template <>
struct FieldsOf<IssuedGroup> {
  using Of = IssuedGroup;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"description", OrNull{&Of::description}},
      Field{"ranks", Issuing{&Of::ranks}},
      Field{"unknown", Issuing{&Of::unknown},
            "members by a dump or the generated code of their logs, of which no dump is among the "
            "input, whose dump holds nothing of the group and is not whole, or whose profile holds "
            "nothing of it"},
      Field{"collectives",
            [](const Of& of, const InIssued& in) { return IssuedLines(in.answer.issued, of); }},
  };
};

template <>
struct FieldsOf<MessageLine> {
  using Of = MessageLine;
  static constexpr FieldList list{
      Field{"group", [](const Of& of) { return of.group->name; }},
      Field{"description",
            [](const Of& of) { return OrNull{&MessageGroup::description}(*of.group); }},
      Field{"from",
            [](const Of& of, const InIssued& in) {
              return RankOfGroup(in.answer.issued, *of.group, of.from);
            },
            "the rank, as in the dumps' names; \"2 of the group\": of which no dump is known"},
      Field{"to",
            [](const Of& of, const InIssued& in) {
              return RankOfGroup(in.answer.issued, *of.group, of.to);
            }},
      Field{"sends", &Of::sent},
      Field{"receives", &Of::received},
      Field{"open_sends", &Of::open_sends, "of them: not ended"},
      Field{"open_receives", &Of::open_receives},
  };
};

template <>
struct FieldsOf<ProfiledMessages> {
  using Of = ProfiledMessages;
  static constexpr FieldList list{
      Field{"rank", &Of::rank},
      Field{"sends", &Of::sends},
      Field{"send_ns", &Of::send_ns,
            "how long the rank, or its device, was inside of them; null: the profile does not show "
            "when they ended"},
      Field{"receives", &Of::receives},
      Field{"receive_ns", &Of::receive_ns},
      Field{"without_peer", &Of::without_peer,
            "of both: how many whose peer the profiles do not tell"},
  };
};

template <>
struct FieldsOf<ProfiledPair> {
  using Of = ProfiledPair;
  static constexpr FieldList list{
      Field{"from", &Of::from, "rank"},
      Field{"to", &Of::to, "rank"},
      Field{"sends", &Of::sends, "in the profile of `from`; null: it has none"},
      Field{"send_ns", &Of::send_ns, "as in profiled_messages"},
      Field{"receives", &Of::receives, "in the profile of `to`; null: it has none"},
      Field{"receive_ns", &Of::receive_ns},
  };
};

template <>
struct FieldsOf<CollectiveFinding> {
  using Of = CollectiveFinding;
  static constexpr std::string_view kinds[] = {"collective_not_reached", "collective_divergence",
                                               "stuck", "late_rank"};
  static constexpr FieldList list{
      Field{"kind", [](const Of& of) { return Name(of.kind); }, "", kinds},
      Field{"severity", &Of::severity},
      Field{"title", &Of::title},
      Field{"detail", &Of::detail},
      Field{"ranks", Issuing{&Of::ranks}},
      Field{"group", &Of::group},
      Field{"sequence_number", &Of::sequence},
      Field{"graph", OrNull{&Of::label}},
      Field{"function", OrNull{&Of::function}},
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}},
      Field{"cause", OrNull{&Of::cause}},
      Field{"try", OrNull{&Of::advice}},
      Field{"since_us", &Of::since_us},
  };
};

template <>
struct FieldsOf<GraphProgress> {
  using Of = GraphProgress;
  static constexpr FieldList list{
      Field{"rank", kIssuingRank},
      Field{"graph", &Of::label},
      Field{"function", &Of::function},
      Field{"scheduled", &Of::scheduled, "collectives of the generated code, without waits"},
      Field{"issued", &Of::issued, "of all calls that the files hold"},
      Field{"reached_in_last_call", &Of::reached},
      Field{"next", OrNull{&Of::next}},
  };
};

template <>
struct FieldsOf<RankWait> {
  using Of = RankWait;
  static constexpr FieldList list{
      Field{"rank", kIssuingRank},
      Field{"collectives", &Of::collectives},
      Field{"wait_us", [](const Of& of) { return static_cast<double>(of.wait_ns) / 1e3; },
            "in all of them"},
      Field{"last_in", &Of::last_in, "collectives that it was the last to issue"},
  };
};

template <>
struct FieldsOf<CutDump> {
  using Of = CutDump;
  static constexpr FieldList list{
      Field{"rank", OrNull{&Of::rank}},
      Field{"path", &Of::path},
      Field{"byte_offset", &Of::byte_offset},
      Field{"problem", &Of::problem},
  };
};

template <>
struct FieldsOf<NotCompared> {
  using Of = NotCompared;
  static constexpr std::string_view sources[] = {"dumps", "profiles", "logs of libtrace"};
  static constexpr FieldList list{
      Field{"count", &Of::count},
      Field{"source", &Of::source, "", sources},
      Field{"reason", &Of::reason},
  };
};

template <>
struct FieldsOf<IssuedJob> {
  using Of = IssuedJob;
  static constexpr FieldList list{
      Field{"sources", &Of::Sources, "the files that were compared: \"the dumps of 4 ranks\""},
      Field{"groups", &Of::groups},
      Field{"messages", &MessageLines,
            "sends and receives, a row for each pair of ranks and direction"},
      Field{"findings",
            [](const Of&, const InIssued& in) -> const std::vector<CollectiveFinding>& {
              return in.answer.problems;
            }},
      Field{"progress",
            [](const Of&, const InIssued& in) -> const std::vector<GraphProgress>& {
              return in.answer.progress;
            }},
      Field{"waits", &WaitsByRank,
            "what each rank waited for the last rank, in the collectives whose wait_us is known"},
      Field{"cut_dumps", &Of::cut_dumps,
            "dumps that are cut, damaged or refused, and have no whole copy in the other form: "
            "what they do not hold is unknown"},
  };
};

}  // namespace tlparse
