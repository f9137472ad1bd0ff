// A regular expression as a tree, and as the program of an automaton.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tlparse {

using ByteSet = std::bitset<256>;

enum class PatternAssertion : std::uint8_t { kLineBegin, kLineEnd, kWordEdge, kNoWordEdge };

struct PatternTree {
  enum class Kind : std::uint8_t { kSequence, kChoice, kRepeat, kBytes, kAssertion };
  static constexpr int kNoLimit = -1;
  Kind kind = Kind::kSequence;
  std::vector<PatternTree> children = {};
  ByteSet bytes = {};              // kBytes: one of them
  int least = 0, most = kNoLimit;  // kRepeat
  PatternAssertion assertion = PatternAssertion::kLineBegin;
};

// Literal characters, ., [...], \d \w \s \D \W \S, \t, ^ $ \b \B, (...), (?:...), |, * + ? {m,n}, and
// these with a ? behind, which changes nothing here. Bytes of one character of UTF-8 stay together.
// kUsage: the pattern is wrong, or has what this does not know.
Result<PatternTree> ParsePattern(std::string_view pattern, bool is_case_sensitive);

struct PatternNode {
  enum class Kind : std::uint8_t { kBytes, kSplit, kAssertion, kMatch };
  Kind kind = Kind::kMatch;
  PatternAssertion assertion = PatternAssertion::kLineBegin;
  int next = -1, other = -1;  // kSplit has both
  ByteSet bytes = {};
};

struct PatternProgram {
  std::vector<PatternNode> nodes;
  int start = 0;
};

// `is_reverse`: of texts that are read backwards. kUsage: it is too large.
Result<PatternProgram> ProgramOf(const PatternTree& tree, bool is_reverse);

}  // namespace tlparse
