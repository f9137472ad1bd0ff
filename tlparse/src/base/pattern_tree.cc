#include "base/pattern_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace tlparse {
namespace {

constexpr int kMostRepeats = 1000;
constexpr std::size_t kMostNodes = 10000;
constexpr int kMostDepth = 100;  // of groups

ByteSet Range(int first, int last) {
  ByteSet bytes;
  for (int byte = first; byte <= last; ++byte) bytes.set(static_cast<std::size_t>(byte));
  return bytes;
}

ByteSet ClassOf(char letter) {
  switch (letter) {
    case 'd':
      return Range('0', '9');
    case 'w':
      return Range('0', '9') | Range('a', 'z') | Range('A', 'Z') | Range('_', '_');
    default:
      return Range(' ', ' ') | Range('\t', '\r');
  }
}

PatternTree OfBytes(const ByteSet& bytes) {
  PatternTree tree;
  tree.kind = PatternTree::Kind::kBytes;
  tree.bytes = bytes;
  return tree;
}

PatternTree OfKind(PatternTree::Kind kind, std::vector<PatternTree> children) {
  PatternTree tree;
  tree.kind = kind;
  tree.children = std::move(children);
  return tree;
}

PatternTree Repeat(PatternTree child, int least, int most) {
  PatternTree tree = OfKind(PatternTree::Kind::kRepeat, {std::move(child)});
  tree.least = least;
  tree.most = most;
  return tree;
}

// These characters of ASCII, and all others.
PatternTree WithOtherCharacters(const ByteSet& ascii) {
  PatternTree other = OfKind(
      PatternTree::Kind::kSequence,
      {OfBytes(Range(0xC0, 0xFF)), Repeat(OfBytes(Range(0x80, 0xBF)), 0, PatternTree::kNoLimit)});
  return OfKind(PatternTree::Kind::kChoice, {OfBytes(ascii), std::move(other)});
}

class PatternParser {
 public:
  PatternParser(std::string_view text, bool is_case_sensitive)
      : text_(text), is_case_sensitive_(is_case_sensitive) {}

  Result<PatternTree> Parse() {
    ASSIGN_OR_RETURN(PatternTree tree, Choice(0));
    if (!IsDone()) return Wrong("a ) without its (");
    return tree;
  }

 private:
  bool IsDone() const { return at_ == text_.size(); }
  bool Next(char c) const { return !IsDone() && text_[at_] == c; }
  bool Take(char c) {
    if (!Next(c)) return false;
    ++at_;
    return true;
  }
  tl::unexpected<Error> Wrong(std::string_view what) const {
    return Fail(ErrorCode::kUsage,
                fmt::format("regular expression, byte {}: {}", std::min(at_, text_.size()), what));
  }

  Result<PatternTree> Choice(int depth) {
    if (depth > kMostDepth) return Wrong("too many groups in groups");
    std::vector<PatternTree> choices;
    do {
      std::vector<PatternTree> parts;
      while (!IsDone() && !Next('|') && !Next(')')) {
        ASSIGN_OR_RETURN(PatternTree part, Repeated(depth));
        parts.push_back(std::move(part));
      }
      choices.push_back(OfKind(PatternTree::Kind::kSequence, std::move(parts)));
    } while (Take('|'));
    return choices.size() == 1 ? std::move(choices.front())
                               : OfKind(PatternTree::Kind::kChoice, std::move(choices));
  }

  Result<PatternTree> Repeated(int depth) {
    ASSIGN_OR_RETURN(PatternTree tree, Atom(depth));
    while (!IsDone()) {
      int least = 0, most = PatternTree::kNoLimit;
      if (Take('+')) {
        least = 1;
      } else if (Take('?')) {
        most = 1;
      } else if (Next('{') && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1])) {
        ++at_;
        ASSIGN_OR_RETURN(least, Number());
        most = least;
        if (Take(',')) {
          most = PatternTree::kNoLimit;
          if (!Next('}')) {
            ASSIGN_OR_RETURN(most, Number());
          }
        }
        if (!Take('}')) return Wrong("a { without its }");
        if (most != PatternTree::kNoLimit && most < least) return Wrong("{m,n} with m above n");
      } else if (!Take('*')) {
        break;
      }
      Take('?');
      tree = Repeat(std::move(tree), least, most);
    }
    return tree;
  }

  Result<int> Number() {
    int value = 0;
    const std::size_t start = at_;
    while (!IsDone() && IsDigit(text_[at_]) && value <= kMostRepeats)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == start) return Wrong("a number is missing");
    if (value > kMostRepeats) return Wrong(fmt::format("at most {} times", kMostRepeats));
    return value;
  }

  Result<PatternTree> Atom(int depth) {
    const char c = text_[at_++];
    switch (c) {
      case '(':
        return Group(depth);
      case '[':
        return Class();
      case '\\':
        return Escape();
      case '.':
        return WithOtherCharacters(Range(0, 0x7F));
      case '^':
        return Assertion(PatternAssertion::kLineBegin);
      case '$':
        return Assertion(PatternAssertion::kLineEnd);
      case '*':
      case '+':
      case '?':
        --at_;
        return Wrong(fmt::format("nothing before {} to repeat", c));
      default:
        return Literal(c);
    }
  }

  // A character; of UTF-8 with the bytes that follow.
  PatternTree Literal(char c) {
    std::vector<PatternTree> bytes = {OfBytes(OfCharacter(c))};
    const auto is_inside = [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    };
    while (static_cast<unsigned char>(c) >= 0xC0 && !IsDone() && is_inside(text_[at_]))
      bytes.push_back(OfBytes(OfCharacter(text_[at_++])));
    return OfKind(PatternTree::Kind::kSequence, std::move(bytes));
  }

  ByteSet OfCharacter(char c) const {
    const auto byte = static_cast<unsigned char>(c);
    ByteSet bytes = Range(byte, byte);
    const char lower = static_cast<char>(c | 0x20);
    if (!is_case_sensitive_ && lower >= 'a' && lower <= 'z')
      bytes |= Range(lower, lower) | Range(lower - 32, lower - 32);
    return bytes;
  }

  static PatternTree Assertion(PatternAssertion what) {
    PatternTree tree = OfKind(PatternTree::Kind::kAssertion, {});
    tree.assertion = what;
    return tree;
  }

  Result<PatternTree> Group(int depth) {
    if (Take('?') && !Take(':')) return Wrong("of (?…) only (?:…) is known");
    ASSIGN_OR_RETURN(PatternTree tree, Choice(depth + 1));
    if (!Take(')')) return Wrong("a ( without its )");
    return tree;
  }

  // What stands behind a backslash; of one character.
  Result<ByteSet> Escaped(char c) {
    if (c == 't') return Range('\t', '\t');
    if (c == 'd' || c == 'w' || c == 's') return ClassOf(c);
    if (IsAlphanumeric(c)) return Wrong(fmt::format("\\{} is not known", c));
    if (static_cast<unsigned char>(c) >= 0x80) return Wrong("no \\ before this character");
    return OfCharacter(c);
  }

  Result<PatternTree> Escape() {
    if (IsDone()) return Wrong("nothing behind the \\");
    const char c = text_[at_++];
    if (c == 'b') return Assertion(PatternAssertion::kWordEdge);
    if (c == 'B') return Assertion(PatternAssertion::kNoWordEdge);
    if (c == 'D' || c == 'W' || c == 'S')
      return WithOtherCharacters(Range(0, 0x7F) & ~ClassOf(static_cast<char>(c + 32)));
    ASSIGN_OR_RETURN(const ByteSet bytes, Escaped(c));
    return OfBytes(bytes);
  }

  Result<PatternTree> Class() {
    const bool is_opposite = Take('^');
    ByteSet bytes;
    for (bool is_first = true; is_first || !Next(']'); is_first = false) {
      if (IsDone()) return Wrong("a [ without its ]");
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) >= 0x80) return Wrong("[…] knows characters of ASCII only");
      if (c == '\\') {
        if (IsDone()) return Wrong("nothing behind the \\");
        ASSIGN_OR_RETURN(const ByteSet escaped, Escaped(text_[at_++]));
        bytes |= escaped;
        continue;
      }
      char last = c;
      if (at_ + 1 < text_.size() && Next('-') && text_[at_ + 1] != ']') {
        last = text_[at_ + 1];
        at_ += 2;
        if (last < c || last == '\\')
          return Wrong("a range of characters that ends before it begins");
      }
      for (int one = c; one <= last; ++one) bytes |= OfCharacter(static_cast<char>(one));
    }
    ++at_;
    return is_opposite ? WithOtherCharacters(Range(0, 0x7F) & ~bytes) : OfBytes(bytes);
  }

  std::string_view text_;
  bool is_case_sensitive_;
  std::size_t at_ = 0;
};

// Made from the end: each part knows the node that follows it.
class ProgramMaker {
 public:
  explicit ProgramMaker(bool is_reverse) : is_reverse_(is_reverse) {}

  Result<PatternProgram> Make(const PatternTree& tree) {
    const int match = Add({});
    program_.start = Emit(tree, match);
    if (program_.nodes.size() > kMostNodes)
      return Fail(ErrorCode::kUsage, "the regular expression is too large: repeat less");
    return std::move(program_);
  }

 private:
  int Add(const PatternNode& node) {
    program_.nodes.push_back(node);
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  int Emit(const PatternTree& tree, int next) {
    if (program_.nodes.size() > kMostNodes) return next;
    PatternNode node;
    node.next = next;
    switch (tree.kind) {
      case PatternTree::Kind::kSequence:
        for (std::size_t i = 0; i < tree.children.size(); ++i)
          next = Emit(tree.children[is_reverse_ ? i : tree.children.size() - 1 - i], next);
        return next;
      case PatternTree::Kind::kChoice: {
        int first = Emit(tree.children.front(), next);
        for (std::size_t i = 1; i < tree.children.size(); ++i)
          first = Split(first, Emit(tree.children[i], next));
        return first;
      }
      case PatternTree::Kind::kRepeat:
        return EmitRepeat(tree, next);
      case PatternTree::Kind::kBytes:
        node.kind = PatternNode::Kind::kBytes;
        node.bytes = tree.bytes;
        return Add(node);
      case PatternTree::Kind::kAssertion:
        node.kind = PatternNode::Kind::kAssertion;
        node.assertion = Turned(tree.assertion);
        return Add(node);
    }
    return next;
  }

  int EmitRepeat(const PatternTree& tree, int next) {
    const PatternTree& child = tree.children.front();
    if (tree.most == PatternTree::kNoLimit) {
      const int again = Split(-1, next);
      const int body = Emit(child, again);
      program_.nodes[static_cast<std::size_t>(again)].next = body;
      next = again;
    }
    // Each of the optional ones can be followed by the rest or by what is behind them all.
    const int behind = next;
    for (int i = tree.least; i < tree.most; ++i) next = Split(Emit(child, next), behind);
    for (int i = 0; i < tree.least; ++i) next = Emit(child, next);
    return next;
  }

  int Split(int next, int other) {
    PatternNode node;
    node.kind = PatternNode::Kind::kSplit;
    node.next = next;
    node.other = other;
    return Add(node);
  }

  PatternAssertion Turned(PatternAssertion one) const {
    if (!is_reverse_) return one;
    if (one == PatternAssertion::kLineBegin) return PatternAssertion::kLineEnd;
    return one == PatternAssertion::kLineEnd ? PatternAssertion::kLineBegin : one;
  }

  bool is_reverse_;
  PatternProgram program_;
};

}  // namespace

Result<PatternTree> ParsePattern(std::string_view pattern, bool is_case_sensitive) {
  return PatternParser(pattern, is_case_sensitive).Parse();
}

Result<PatternProgram> ProgramOf(const PatternTree& tree, bool is_reverse) {
  return ProgramMaker(is_reverse).Make(tree);
}

}  // namespace tlparse
