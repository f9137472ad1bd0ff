#include "base/line_pattern.h"

#include <algorithm>

#include "base/ascii.h"

namespace tlparse {

LazyAutomaton::LazyAutomaton(PatternProgram program, bool is_anchored)
    : program_(std::move(program)), is_anchored_(is_anchored), seen_(program_.nodes.size()) {}

LazyAutomaton::Before LazyAutomaton::BeforeOf(char c) {
  return IsWordCharacter(c) ? Before::kWord : Before::kOther;
}

int LazyAutomaton::Start(Before before) {
  const auto at = static_cast<std::size_t>(before);
  if (starts_[at] < 0) {
    const int start = StateOf(before, {program_.start});
    starts_[at] = start;
  }
  return starts_[at];
}

int LazyAutomaton::StateOf(Before before, Nodes nodes) {
  if (states_.size() >= kMostStates) {
    ids_.clear();
    states_.clear();
    steps_.clear();
    starts_.fill(-1);
  }
  const auto [entry, is_new] = ids_.try_emplace({before, std::move(nodes)}, 0);
  if (is_new) {
    entry->second = static_cast<int>(steps_.size()) << 1;
    states_.emplace_back(before, &entry->first.second);
    steps_.resize(steps_.size() + kSymbols, -1);
  }
  return entry->second;
}

void LazyAutomaton::Push(int node) {
  std::uint32_t& seen = seen_[static_cast<std::size_t>(node)];
  if (seen == round_) return;
  seen = round_;
  open_.push_back(node);
}

// The nodes that wait for a byte, in closed_; true: the match is among what they lead to.
bool LazyAutomaton::Close(const Nodes& nodes, Before before, int symbol) {
  const Before behind = symbol == kEdge
                            ? Before::kEdge
                            : BeforeOf(static_cast<char>(static_cast<unsigned char>(symbol)));
  const bool is_edge_of_word = (before == Before::kWord) != (behind == Before::kWord);
  const auto holds = [&](PatternAssertion one) {
    switch (one) {
      case PatternAssertion::kLineBegin:
        return before == Before::kEdge;
      case PatternAssertion::kLineEnd:
        return behind == Before::kEdge;
      case PatternAssertion::kWordEdge:
        return is_edge_of_word;
      default:
        return !is_edge_of_word;
    }
  };
  ++round_;
  closed_.clear();
  bool is_match = false;
  for (const int node : nodes) Push(node);
  if (!is_anchored_) Push(program_.start);
  while (!open_.empty()) {
    const int at = open_.back();
    open_.pop_back();
    const PatternNode& node = program_.nodes[static_cast<std::size_t>(at)];
    switch (node.kind) {
      case PatternNode::Kind::kBytes:
        closed_.push_back(at);
        break;
      case PatternNode::Kind::kSplit:
        Push(node.next);
        Push(node.other);
        break;
      case PatternNode::Kind::kAssertion:
        if (holds(node.assertion)) Push(node.next);
        break;
      case PatternNode::Kind::kMatch:
        is_match = true;
        break;
    }
  }
  return is_match;
}

int LazyAutomaton::Make(int state, int symbol) {
  const auto [before, nodes] = states_[Id(state)];
  const bool is_match = Close(*nodes, before, symbol);
  made_ += seen_.size();
  Nodes next;
  if (symbol != kEdge) {
    for (const int at : closed_) {
      const PatternNode& node = program_.nodes[static_cast<std::size_t>(at)];
      if (node.bytes.test(static_cast<std::size_t>(symbol))) next.push_back(node.next);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
  }
  const bool is_kept = states_.size() < kMostStates;  // the state is not forgotten
  const Before after = symbol == kEdge
                           ? Before::kEdge
                           : BeforeOf(static_cast<char>(static_cast<unsigned char>(symbol)));
  const int made = StateOf(after, std::move(next)) | (is_match ? 1 : 0);
  if (is_kept) steps_[static_cast<std::size_t>((state >> 1) + symbol)] = made;
  return made;
}

Result<LinePattern> LinePattern::Make(std::string_view pattern, bool is_case_sensitive) {
  ASSIGN_OR_RETURN(const PatternTree tree, ParsePattern(pattern, is_case_sensitive));
  ASSIGN_OR_RETURN(PatternProgram forward, ProgramOf(tree, false));
  ASSIGN_OR_RETURN(PatternProgram backward, ProgramOf(tree, true));
  LinePattern made(LazyAutomaton(forward, false), LazyAutomaton(std::move(backward), true),
                   LazyAutomaton(forward, true));
  if (made.FirstEnd({}, 0))
    return Fail(ErrorCode::kUsage,
                "the regular expression matches an empty text, and so every line");
  return made;
}

bool LinePattern::IsLate(LazyAutomaton& automaton, std::size_t steps) {
  constexpr std::size_t kMostWork = std::size_t{1} << 18;  // between two looks at the clock
  work_ += steps + automaton.TakeMade();
  if (work_ < kMostWork) return is_late_;
  work_ = 0;
  is_late_ = is_late_ || std::chrono::steady_clock::now() > deadline_;
  return is_late_;
}

std::optional<std::size_t> LinePattern::FirstEnd(std::string_view line, std::size_t from) {
  using Before = LazyAutomaton::Before;
  int state = ends_.Start(from == 0 ? Before::kEdge : LazyAutomaton::BeforeOf(line[from - 1]));
  for (std::size_t at = from; at < line.size();) {
    const std::size_t end = std::min(line.size(), at + 1024);
    if (IsLate(ends_, end - at)) return std::nullopt;
    for (; at < end; ++at) {
      state = ends_.Step(state, static_cast<unsigned char>(line[at]));
      if (LazyAutomaton::IsMatch(state)) return at;
    }
  }
  state = ends_.Step(state, LazyAutomaton::kEdge);
  return LazyAutomaton::IsMatch(state) ? std::optional(line.size()) : std::nullopt;
}

std::optional<LinePattern::Match> LinePattern::Find(std::string_view line, std::size_t from) {
  using Before = LazyAutomaton::Before;
  if (is_late_) return std::nullopt;
  const std::optional<std::size_t> found = FirstEnd(line, from);
  if (!found) return std::nullopt;
  Match match = {*found, *found};
  int state = begins_.Start(match.end == line.size() ? Before::kEdge
                                                     : LazyAutomaton::BeforeOf(line[match.end]));
  for (std::size_t at = match.end; !begins_.IsDead(state) && !IsLate(begins_, 1); --at) {
    state = begins_.Step(state,
                         at == 0 ? LazyAutomaton::kEdge : static_cast<unsigned char>(line[at - 1]));
    if (LazyAutomaton::IsMatch(state)) match.begin = at;
    if (at == from || at == 0) break;
  }
  state = extends_.Start(match.begin == 0 ? Before::kEdge
                                          : LazyAutomaton::BeforeOf(line[match.begin - 1]));
  for (std::size_t at = match.begin; !extends_.IsDead(state) && !IsLate(extends_, 1); ++at) {
    state = extends_.Step(
        state, at == line.size() ? LazyAutomaton::kEdge : static_cast<unsigned char>(line[at]));
    if (LazyAutomaton::IsMatch(state)) match.end = at;
    if (at == line.size()) break;
  }
  return match;
}

}  // namespace tlparse
