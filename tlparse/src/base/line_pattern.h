// A regular expression that is looked for in lines. The time is linear in the length of a line,
// whatever the pattern: it is run as an automaton whose states are made when they are first needed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pattern_tree.h"
#include "base/result.h"

namespace tlparse {

// The states of a program, made when they are reached, and forgotten when they are too many.
class LazyAutomaton {
 public:
  // What is before the next byte.
  enum class Before : std::uint8_t { kEdge, kWord, kOther };
  static constexpr int kEdge = 256;  // the symbol behind the last byte

  // Not anchored: a match may begin anywhere.
  LazyAutomaton(PatternProgram program, bool is_anchored);
  int Start(Before before);
  // The next state; IsMatch of it: the program matches what is before the symbol.
  int Step(int state, int symbol) {
    const int known = steps_[static_cast<std::size_t>((state >> 1) + symbol)];
    return known >= 0 ? known : Make(state, symbol);
  }
  static bool IsMatch(int state) { return (state & 1) != 0; }
  bool IsDead(int state) const { return is_anchored_ && states_[Id(state)].second->empty(); }
  // How much work it was to make states since the last call.
  std::size_t TakeMade() { return std::exchange(made_, 0); }
  static Before BeforeOf(char c);

 private:
  static constexpr std::size_t kSymbols = 257, kMostStates = 2000;
  using Nodes = std::vector<int>;  // ascending
  static std::size_t Id(int state) { return static_cast<std::size_t>(state >> 1) / kSymbols; }
  int Make(int state, int symbol);
  int StateOf(Before before, Nodes nodes);  // where its steps begin, times two
  bool Close(const Nodes& nodes, Before before, int symbol);
  void Push(int node);

  PatternProgram program_;
  bool is_anchored_;
  std::map<std::pair<Before, Nodes>, int> ids_;
  std::vector<std::pair<Before, const Nodes*>> states_;
  std::vector<int> steps_;  // kSymbols of each state; -1: not made yet
  std::array<int, 3> starts_ = {-1, -1, -1};
  std::vector<int> open_, closed_;  // of Close
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
  std::size_t made_ = 0;
};

class LinePattern {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
  };

  // kUsage: the pattern is wrong, too large, or matches an empty text and so every line.
  static Result<LinePattern> Make(std::string_view pattern, bool is_case_sensitive);

  // From then on Find finds nothing, and is_late says so.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  bool is_late() const { return is_late_; }

  // The match from `from` on that ends first, extended as far as it goes.
  std::optional<Match> Find(std::string_view line, std::size_t from);

 private:
  LinePattern(LazyAutomaton ends, LazyAutomaton begins, LazyAutomaton extends)
      : ends_(std::move(ends)), begins_(std::move(begins)), extends_(std::move(extends)) {}
  bool IsLate(LazyAutomaton& automaton, std::size_t steps);
  std::optional<std::size_t> FirstEnd(std::string_view line, std::size_t from);

  LazyAutomaton ends_;     // finds where a match ends
  LazyAutomaton begins_;   // backwards from there, where it begins
  LazyAutomaton extends_;  // from there, how far it goes
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::size_t work_ = 0;  // since the last look at the clock
  bool is_late_ = false;
};

}  // namespace tlparse
